"""Personalized (l, c)-anonymity, Fig. 2: rows open to a skew attack against l, at c = .4."""

from __future__ import annotations

from typing import Any

from experiment import start
from personal import compare


def main() -> None:
    """Measure, and check the directions."""
    experiment = start("skew_fig2", __doc__)
    found = [compare(experiment, l, 0.4) for l in (3, 5, 7, 9)]  # noqa: E741
    experiment.claim("(l, c)-clustering exposes nobody", all(point["exposed"] == 0 for point in found))
    exposed = [point["exposed_plain"] for point in found]
    experiment.claim("plain l-diversity exposes more the smaller l is", exposed == sorted(exposed, reverse=True))
    experiment.finish(draw)


def draw(axes: Any, points: list[dict[str, Any]]) -> None:
    """Rows exposed by both."""
    axes.plot([p["l"] for p in points], [p["exposed_plain"] for p in points], "s--", label="plain l-diversity")
    axes.plot([p["l"] for p in points], [p["exposed"] for p in points], "o-", label="(l, c)-clustering")
    axes.set(xlabel="l", ylabel="rows open to a skew attack, c = .4")


if __name__ == "__main__":
    main()
