"""How far an audit is: a bar over a big file, a running count over a topic; on stderr, where results do not go."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from stream_anon.cli import output
from stream_anon.cli.anonymize import bars

BIG = 8 << 20
"""Bytes from which on a file is worth a bar: smaller ones are audited in a second or two."""

EVERY = 30.0
"""Seconds between lines about a followed topic where no terminal shows them."""

_REDRAW = 0.25


@contextmanager
def bar_over(path: Path, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar over a big file, if stderr is a terminal; what it yields is told of every part that was read."""
    total = _records(path) if not quiet and output.talk().is_terminal else 0
    if not total:
        yield lambda records: None
        return
    with bars(quiet=False) as bar:
        bar.total = total
        share, done = bar("auditing"), 0

        def heard(records: int) -> None:
            nonlocal done
            done += records
            share(min(done / total, 1.0))

        yield heard


def _records(path: Path) -> int:
    """Estimate the records of a big file of lines; 0 for a small one, or where lines are no records."""
    try:
        size = path.stat().st_size
        if size < BIG or path.suffix.lower() == ".parquet":
            return 0
        with path.open("rb") as file:
            head = file.read(1 << 20)
    except OSError:
        return 0
    return int(size / max(len(head), 1) * head.count(b"\n"))


class Count:
    """The running count of a followed topic: one changing line in a terminal, a line every half minute elsewhere."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._began = self._told = clock()
        self.records = self.findings = 0

    def __enter__(self) -> Count:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def add(self, records: int, findings: int) -> None:
        """Count records that were judged, and the kinds of findings so far."""
        self.records, self.findings = self.records + records, findings
        now = self._clock()
        if now - self._told >= (_REDRAW if self._live is not None else EVERY):
            self._told = now
            self._tell()

    def _tell(self) -> None:
        found = "nothing found" if not self.findings else f"{self.findings} kind(s) of findings"
        rate = self.records / max(self._clock() - self._began, 0.001)
        line = Text(f"{self.records:,} records audited, {rate:,.0f}/s: {found}", style="red" if self.findings else "")
        if self._live is not None:
            self._live.update(line, refresh=True)
        else:
            self._console.print(line)
