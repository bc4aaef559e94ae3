"""The live view of the demo: a picture on a terminal, a line per second elsewhere. Decides nothing."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stream_anon.demo.performance import BeforeAfter, Performance

_SHOWN_FOR = 1.5
"""Seconds for which one group is left to be read; hundreds pass by in that time."""

_MOST_ROWS = 6
_BAR = 32


class View(Protocol):
    """A view of a stage, redrawn each time it is called; it may skip updates that come too fast."""

    def __enter__(self) -> View: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave the terminal as it was."""

    def __call__(self, stage: Performance) -> None:
        """Show the stage as it is now."""


class Plain:
    """A view that prints one line per second."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = 1.0

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Do nothing: the terminal was not changed."""

    def __call__(self, stage: Performance) -> None:
        """Print a line if a second has passed."""
        if stage.elapsed < self._next:
            return
        self._next = int(stage.elapsed) + 1.0
        tally = stage.tally
        delays = tally.delays
        bound = "" if stage.bound is None else f" of {stage.bound:g} s"
        self._console.print(
            f"{stage.elapsed:4.0f} s  in {tally.consumed:,}  published {tally.published:,}  "
            f"waiting {stage.waiting:,}  suppressed {tally.suppressed:,}  "
            f"delay p50 {delays.quantile(0.5):.2f} p99 {delays.quantile(0.99):.2f} max {delays.max:.2f}{bound}  "
            f"loss {tally.loss:.3f}"
        )


class Picture:
    """A view that redraws itself in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._drawn = -1.0
        self._shown: BeforeAfter | None = None
        self._since = 0.0

    def __enter__(self) -> Picture:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave the last picture on the screen."""
        self._live.stop()

    def __call__(self, stage: Performance) -> None:
        """Draw the stage, at most ten times a second."""
        now = stage.elapsed
        if now - self._drawn < 0.1 and not stage.over:
            return
        self._drawn = now
        if self._shown is None or now - self._since > _SHOWN_FOR:
            self._shown, self._since = stage.last, now
        self._live.update(picture(stage, self._shown), refresh=True)


def picture(stage: Performance, shown: BeforeAfter | None) -> RenderableType:
    """Draw everything known of a stage, in the space of a small terminal."""
    return Group(_counters(stage), _bars(stage), *([_group(shown, stage)] if shown else []))


def _counters(stage: Performance) -> Table:
    tally = stage.tally
    grid = Table.grid(padding=(0, 2))
    figures = {
        "seconds": f"{stage.elapsed:.1f} of {stage.seconds:g}",
        "records/s": f"{tally.consumed / max(stage.elapsed, 0.001):,.0f}",
        "in": f"{tally.consumed:,}",
        "published": f"{tally.published:,}",
        "waiting": f"{stage.waiting:,}",
        "suppressed": f"{tally.suppressed:,}",
        "groups": f"{sum(tally.groups.values()):,}",
    }
    for _ in figures:
        grid.add_column(justify="right")
    grid.add_row(*[Text(name, style="dim") for name in figures])
    grid.add_row(*[Text(value, style="bold") for value in figures.values()])
    return grid


def _bars(stage: Performance) -> Table:
    tally, bound = stage.tally, stage.bound
    grid = Table.grid(padding=(0, 1))
    waits = {"p50": tally.delays.quantile(0.5), "p99": tally.delays.quantile(0.99), "max": tally.delays.max}
    full = bound or max(waits["max"], 0.001)
    _head(grid, "delay", f"bound {bound:g} s" if bound else "")
    for name, wait in waits.items():
        style = "green" if wait <= 0.9 * full else "yellow" if wait <= full else "bold red"
        grid.add_row(f"  {name}", _bar(wait / full, style), f"{wait:.2f} s")
    _head(grid, "information lost", "0 = nothing, 1 = all")
    for name, loss in tally.losses.items():
        grid.add_row(f"  {name}", _bar(loss, "cyan"), f"{loss:.3f}")
    grid.add_row("  weighted", _bar(tally.loss, "bold cyan"), Text(f"{tally.loss:.3f}", style="bold"))
    return grid


def _head(grid: Table, title: str, remark: str) -> None:
    grid.add_row(Text(title, style="bold"), "", Text(remark, style="dim"))


def _bar(share: float, style: str) -> Text:
    filled = round(min(max(share, 0.0), 1.0) * _BAR)
    return Text.assemble(("█" * filled, style), ("░" * (_BAR - filled), "dim"))


def _group(group: BeforeAfter, stage: Performance) -> Table:
    """Draw a group before, row by row, and after, when all rows share their quasi-identifiers."""
    schema = stage.schema
    quasi = [column.name for column in schema.quasi]
    kept = [column.name for column in schema.sensitive]
    table = Table(
        title=f"a group of {len(group.before)}, before and after", title_justify="left", title_style="bold", box=None
    )
    for name in ("", *([schema.subject] if schema.subject else []), *quasi, *kept):
        table.add_column(name, header_style="dim", no_wrap=True)
    shown = group.before[:_MOST_ROWS]
    for i, record in enumerate(shown):
        who = [str(record[schema.subject])] if schema.subject else []
        cells = [str(record[name]) for name in quasi]
        table.add_row("before" if i == 0 else "", *who, *cells, *[str(record[name]) for name in kept], style="dim")
    if len(group.before) > len(shown):
        table.add_row("", f"and {len(group.before) - len(shown)} more", style="dim")
    first = group.after[0]
    boxes = [Text(_label(first[name]), style="bold green") for name in quasi]
    rest = [Text(_among([str(record[name]) for record in group.after])) for name in kept]
    table.add_row(Text("after", style="bold"), *([Text("—", style="dim")] if schema.subject else []), *boxes, *rest)
    return table


def _among(values: list[str]) -> str:
    count = len(set(values))
    return f"one of {count}" if count > 1 else values[0]


def _label(value: object) -> str:
    if isinstance(value, list):
        return str(value[0]) if value[0] == value[-1] else f"{value[0]}-{value[-1]}"
    return str(value)
