"""Read records from CSV lines as they arrive on a file descriptor."""

from __future__ import annotations

import numpy as np

from stream_anon.core.decode import Columnar, LineCount, Payload
from stream_anon.core.hierarchy import Ints
from stream_anon.formats.csv_records import CsvRecords
from stream_anon.formats.lines import Lines


class CsvLines:
    """A reader like `Lines`; a record is the mapping of its cells and has the number of its first line."""

    def __init__(self, lines: Lines, name: str = "the input") -> None:
        self._lines = lines
        self._records = CsvRecords(name, lines.limit)

    @property
    def ended(self) -> bool:
        """Whether the input has ended."""
        return self._lines.ended

    @property
    def count(self) -> LineCount:
        """The counts of where the lines read so far went."""
        self._records.count.read = self._lines.count.read
        return self._records.count

    def read(self, timeout: float | None) -> list[tuple[int, Payload]]:
        """Return what has arrived by now, or within `timeout` seconds if nothing has."""
        lines = self._lines.read(timeout)
        return self._records.feed(lines, self._lines.ended)

    def read_block(self, most: int) -> tuple[Ints, Columnar | list[Payload]]:
        """Return the numbers of the next records, and these by column if there are up to `most`, and all plain."""
        lines = self._lines.read(None)
        if lines and not self._records.named and isinstance(header := lines[0][1], bytes) and b'"' not in header:
            self._records.feed(lines[:1], ended=False)
            lines = lines[1:]
        rows: Columnar | list[Payload] | None = self._records.plain(lines) if len(lines) <= most else None
        if rows is None:
            lines = self._records.feed(lines, self._lines.ended)
            rows = [record for _, record in lines]
        return np.array([number for number, _ in lines], dtype=np.int64), rows
