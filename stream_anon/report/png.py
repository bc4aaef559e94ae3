"""Draw the panels of a comparison as a PNG picture with matplotlib, if it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

from stream_anon.errors import StreamAnonError
from stream_anon.report.parts import Curves

MARKS = "osD^vP"


class NoPlot(StreamAnonError):
    """The drawing library is not installed."""


def draw(panels: Sequence[Curves], file: IO[bytes]) -> None:
    """Draw the panels side by side into a file."""
    figure_of = _library()
    figure = figure_of(figsize=(4.6 * len(panels), 3.8), layout="constrained")
    for axis, panel in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True):
        for i, series in enumerate(panel.series):
            if series.level:
                axis.axhline(series.points[0][1], label=series.name, linestyle="--", color=f"C{i}")
            else:
                across, up = zip(*series.points, strict=True)
                axis.plot(across, up, label=series.name, marker=MARKS[i % len(MARKS)], color=f"C{i}")
        axis.set(title=panel.title, xlabel=panel.across, ylabel=panel.up, ylim=(0, panel.top))
        axis.grid(alpha=0.3)
    figure.axes[0].legend(frameon=False)
    figure.savefig(file, format="png", dpi=130)


def _library() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NoPlot("a picture needs matplotlib: pip install 'stream-anon[plot]'; --html needs nothing") from None
    return Figure
