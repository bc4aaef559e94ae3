"""The page of a comparison: a panel per k, a curve per algorithm, and all runs as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stream_anon.insight.compare import bound_in_words
from stream_anon.report import Page
from stream_anon.report.charts import percent
from stream_anon.report.parts import Curves, Part, Series, Table, Tile

if TYPE_CHECKING:
    from stream_anon.cli.compare import Run


MOST_CURVES = 6
"""Settings that are drawn against k, those that lose least: more curves than colours cannot be told apart."""


def panels(runs: Sequence[Run]) -> tuple[Curves, ...]:
    """Return charts of loss against the bound, for each k; bounds by time and by records do not share an axis."""
    top = min(1.0, 1.08 * max((run.result.loss for run in runs), default=1.0) or 1.0)
    kinds = dict.fromkeys(_kind(run) for run in runs if run.setting.bound is not None) or {"whole table": None}
    found = []
    for k in dict.fromkeys(run.setting.k for run in runs):
        for kind in kinds:
            mine = [run for run in runs if run.setting.k == k and _kind(run) in (kind, "")]
            series = tuple(_series(name, mine) for name in dict.fromkeys(run.setting.algorithm for run in mine))
            caption = "Information lost by delay bound; lower is better. Dashed: the whole table at once."
            found.append(Curves(f"k = {k}", caption, f"delay bound in {kind}", "information lost", series, top))
    return tuple(found)


def over_k(runs: Sequence[Run]) -> tuple[Curves, ...]:
    """Return charts of what is lost and of the mean risk against k, where several were tried."""
    ks = sorted({run.setting.k for run in runs})
    if len(ks) < 2:
        return ()
    kinds = dict.fromkeys((run.setting.algorithm, bound_in_words(run.setting.bound)) for run in runs)
    least = {kind: min(run.result.loss for run in runs if _of(run) == kind) for kind in kinds}
    shown = sorted(kinds, key=lambda kind: least[kind])[:MOST_CURVES]
    lost = {id(run): run.result.loss for run in runs}
    risk = {id(run): run.result.after.mean for run in runs}
    found = []
    for title, what, shares in (("Utility", "information lost", lost), ("Risk", "average risk", risk)):
        series = tuple(
            Series(", ".join(kind), tuple(sorted((float(r.setting.k), shares[id(r)]) for r in runs if _of(r) == kind)))
            for kind in shown
        )
        top = 1.08 * max(height for each in series for _, height in each.points) or 1.0
        caption = f"The {what} by k, of the settings that lose least; lower is better."
        found.append(Curves(f"{title} against k", caption, "k", what, series, min(top, 1.0)))
    return tuple(found)


def _of(run: Run) -> tuple[str, str]:
    return run.setting.algorithm, bound_in_words(run.setting.bound)


def page(runs: Sequence[Run], lead: str, about: Sequence[Part] = ()) -> Page:
    """Build the page of a comparison; `about` says where it comes from."""
    best = min(runs, key=lambda run: run.result.loss)
    worst = max(runs, key=lambda run: run.result.loss)
    tiles = (
        Tile("Settings compared", f"{len(runs)}", "each run once"),
        Tile(
            "Least is lost by",
            best.setting.algorithm,
            f"{percent(best.result.loss)}: {_setting_in_words(best)}",
            "good",
        ),
        Tile("Most is lost by", worst.setting.algorithm, f"{percent(worst.result.loss)}: {_setting_in_words(worst)}"),
    )
    header = ("algorithm", "bound", "k", "information lost", "suppressed", "mean delay", "mean risk", "CPU s")
    rows = tuple(
        (
            run.setting.algorithm,
            bound_in_words(run.setting.bound),
            f"{run.setting.k}",
            percent(run.result.loss),
            f"{run.result.suppressed:,}",
            "none" if run.result.delay is None else f"{run.result.delay.mean:.3g} s",
            percent(run.result.after.mean),
            f"{run.cpu_seconds:.2f}",
        )
        for run in runs
    )
    return Page(
        "Comparison", f"{lead}.", tiles, (*over_k(runs), *panels(runs), Table("All runs", "", header, rows), *about)
    )


def _setting_in_words(run: Run) -> str:
    return f"k = {run.setting.k}, {bound_in_words(run.setting.bound)}"


def _kind(run: Run) -> str:
    """Return the unit of a run's bound; empty for a batch algorithm, which belongs in every panel."""
    bound = run.setting.bound
    return "" if bound is None else "seconds" if bound.time is not None else "records"


def _series(name: str, runs: Sequence[Run]) -> Series:
    mine = [run for run in runs if run.setting.algorithm == name]
    points = [
        (0.0 if bound is None else float(bound.time or bound.records or 0), run.result.loss)
        for run in mine
        for bound in [run.setting.bound]
    ]
    return Series(name, tuple(sorted(points)), level=mine[0].setting.bound is None)
