"""Cut a text file into parts of numbered records: what the formats of lines share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from stream_anon.core.decode import LineCount, Payload
from stream_anon.formats.format import Part
from stream_anon.formats.lines import Lines


class Source(Protocol):
    """What makes records of lines: `Lines` itself, where each line is one, or a reader on top of it."""

    @property
    def ended(self) -> bool:
        """Whether the input has ended."""
        ...

    @property
    def count(self) -> LineCount:
        """The counts of where the lines read so far went."""
        ...

    def read(self, timeout: float | None) -> list[tuple[int, Payload]]:
        """Return the records that have arrived, each with the number of its first line."""
        ...


def read_lines(path: Path, lines: Lines, source: Source, at_once: int) -> Iterator[Part]:
    """Yield the records that `source` makes of the lines of a file."""
    size, first = max(path.stat().st_size, 1), 1
    waiting: list[tuple[int, Payload]] = []
    while not source.ended:
        waiting += source.read(None)
        while len(waiting) >= at_once or (source.ended and waiting):
            part, waiting = waiting[:at_once], waiting[at_once:]
            numbers = np.array([number for number, _ in part], dtype=np.int64)
            payloads = [payload for _, payload in part]
            yield Part(first, numbers, payloads, min(lines.bytes / size, 1.0), source.count)
            first += len(part)
    yield Part(first, np.empty(0, dtype=np.int64), [], 1.0, source.count)
