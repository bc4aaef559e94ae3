"""Cut a text file into parts of numbered records: what the formats of lines share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from stream_anon.core.decode import LineCount, Payload
from stream_anon.formats.format import Part, TableError
from stream_anon.formats.packing import BrokenArchiveError, Opened, opened


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


def read_lines(path: Path, make: Callable[[Opened], Source], at_once: int) -> Iterator[Part]:
    """Yield the records that a source makes of the lines of a file, which may be packed.

    A packed file that is cut off or damaged ends with a TableError that names the line up to which it could be read.
    """
    first = 1
    waiting: list[tuple[int, Payload]] = []
    with opened(path) as file:
        source = make(file)
        while not source.ended:
            try:
                waiting += source.read(None)
            except BrokenArchiveError as error:
                raise TableError(f"{path}: {error} after line {source.count.read:,}") from None
            while len(waiting) >= at_once or (source.ended and waiting):
                part, waiting = waiting[:at_once], waiting[at_once:]
                numbers = np.array([number for number, _ in part], dtype=np.int64)
                payloads = [payload for _, payload in part]
                yield Part(first, numbers, payloads, file.reached, source.count)
                first += len(part)
        yield Part(first, np.empty(0, dtype=np.int64), [], 1.0, source.count)
