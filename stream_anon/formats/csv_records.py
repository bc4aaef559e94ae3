"""Cut CSV records from physical lines, for files and pipes alike: each line ends up in one record or is rejected.

A record has as many cells as the header; one with more or fewer is rejected, so that no value slips into another
column. Quoting is strict. A record that never closes its quote is cut off after `MOST_LINES` lines: its first line is
rejected, and reading goes on with the next one. So it is where one quote too few and one too many, some rows on, would
make a cell of whole rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

import numpy as np

from stream_anon.core.decode import Columnar, LineCount, Payload, Reject
from stream_anon.core.hierarchy import Ints
from stream_anon.errors import StreamAnonError
from stream_anon.formats.arrow.csv_blocks import plain_rows
from stream_anon.formats.format import refuse_same_names
from stream_anon.formats.text.lines import LINE_LIMIT, Lines

MOST_LINES = 100
"""Lines of one record: enough for an address or a note, few enough that an open quote does not swallow a table."""

_Line = tuple[int, str | Reject]


class _Cut(Exception):
    """The record being read cannot continue on the next line."""


class _Source:
    """The lines handed to the parser, with the line on which the present record began."""

    def __init__(self, lines: Sequence[_Line], at: int, limit: int) -> None:
        self._lines = lines
        self._limit = limit
        self.start = self.next = at
        self.dry = False

    def __iter__(self) -> Iterator[str]:
        lines, size = self._lines, 0
        while self.next < len(lines):
            text = lines[self.next][1]
            if isinstance(text, Reject):
                raise _Cut
            if self.next == self.start:
                size = 0
            elif self.next - self.start >= MOST_LINES or size > self._limit:
                raise _Cut
            size += len(text)
            self.next += 1
            yield text
        self.dry = True


class CsvRecords:
    """A parser of numbered lines into numbered records; a record has the number of its first line.

    The first record names the columns. `count` says where the lines went; its `read` is set by the reader of the lines.
    """

    def __init__(self, name: str, limit: int = LINE_LIMIT) -> None:
        self.count = LineCount()
        self._name = name
        self._limit = limit
        self._columns: list[str] = []
        self._delimiter = ","
        self._begins: Payload = b""  # the first line, as it came
        self._open: list[_Line] = []  # lines of a record whose quotes are not closed yet

    @property
    def named(self) -> bool:
        """Whether the columns are known."""
        return bool(self._columns)

    def plain(self, lines: Sequence[tuple[int, Payload]]) -> Columnar | None:
        """Return the rows of lines by column, if each is one record beyond doubt; None if `feed` must see them."""
        if not self._columns or self._open:
            return None
        return plain_rows([line for _, line in lines], self._columns, self._delimiter)

    def feed(self, lines: Sequence[tuple[int, Payload]], ended: bool) -> list[tuple[int, Payload]]:
        """Return the records that are complete with these lines, with all that is left if nothing follows."""
        waiting = [*self._open, *((number, _text(line)) for number, line in lines)]
        if lines and not self._columns:
            self._begins = lines[0][1]
        records: list[tuple[int, Payload]] = []
        at = 0
        while at < len(waiting):
            if not self._columns:
                self._delimiter = _delimiter(waiting[at][1])
            source = _Source(waiting, at, self._limit)
            at = self._read(source, waiting, ended, records)
            if source.dry:
                break
        self._open = waiting[at:]
        return records

    def _read(self, source: _Source, lines: Sequence[_Line], ended: bool, records: list[tuple[int, Payload]]) -> int:
        """Read records until something is wrong with one; return the line to go on with."""
        parser = csv.reader(iter(source), delimiter=self._delimiter, strict=True)
        while True:
            start = source.start = source.next
            try:
                cells = next(parser)
            except StopIteration:
                return source.next
            except (csv.Error, _Cut):
                if source.dry and not ended:
                    return start
                source.dry = False
                if not self._columns:
                    raise self._no_header() from None
                number, text = lines[start]
                records.append((number, text if isinstance(text, Reject) else Reject.NOT_CSV))
                return start + 1
            if self._is_blank(cells):
                self.count.blank += source.next - start
                if not self._columns:  # what separates the cells is seen in the line that names them
                    return source.next
            elif not self._columns:
                if any("\0" in cell for cell in cells):
                    raise self._no_header()
                self._name_columns(cells)
                self.count.header += source.next - start
                return source.next
            elif source.next - start > 1 and self._holds_rows(cells):
                records.append((lines[start][0], Reject.NOT_CSV))
                return start + 1
            else:
                self.count.continued += source.next - start - 1
                right = len(cells) == len(self._columns)
                row: Payload = dict(zip(self._columns, cells, strict=True)) if right else Reject.CELL_COUNT
                records.append((lines[start][0], row))

    def _is_blank(self, cells: Sequence[str]) -> bool:
        return not cells or (len(cells) == 1 != len(self._columns) and not cells[0].strip())

    def _holds_rows(self, cells: Sequence[str]) -> bool:
        """Tell whether a cell is the end of one row, whole rows perhaps, and the beginning of another, cell by cell."""
        last = len(self._columns) - 1
        if last == 0 or len(cells) != last + 1:
            return False
        for place, cell in enumerate(cells):
            before, *between = (line.count(self._delimiter) for line in cell.split("\n"))
            if between and (before, between.pop()) == (last - place, place) and all(count == last for count in between):
                return True
        return False

    def _name_columns(self, cells: Sequence[str]) -> None:
        names = [cell.strip() for cell in cells]
        refuse_same_names(self._name, names)
        self._columns = names

    def _no_header(self) -> StreamAnonError:
        seen = encoding_of(self._begins) if isinstance(self._begins, bytes) else ""
        if seen:
            return StreamAnonError(
                f"{self._name}: line 1, the line of names, is not UTF-8, it looks like {seen}: "
                f"if it is, pass --encoding {seen}; or save the table as CSV (UTF-8)"
            )
        return StreamAnonError(
            f"{self._name}: the first line must name the columns, and it is not CSV: "
            "save the table as CSV (UTF-8) with a line of names"
        )


def encoding_of(line: bytes) -> str:
    """Return the encoding that a line seems to have, empty if it is UTF-8.

    >>> encoding_of(b"age,ort"), encoding_of("größe".encode("latin-1")), encoding_of("größe".encode("utf-16-be"))
    ('', 'windows-1252', 'utf-16-be')
    """
    if b"\0" in line:
        return "utf-16-be" if line[:1] == b"\0" else "utf-16-le"
    return "windows-1252" if _text(line) is Reject.NOT_UTF8 else ""


def _text(line: Payload) -> str | Reject:
    if isinstance(line, bytes):
        try:
            return line.decode("utf-8") + "\n"
        except UnicodeDecodeError:
            return Reject.NOT_UTF8
    return line if isinstance(line, Reject) else Reject.NOT_CSV


def _delimiter(header: str | Reject) -> str:
    return "," if isinstance(header, Reject) else max(",;\t", key=header.count)


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
