"""The auditor's own CSV reader: records cut from physical lines, each with the line it begins on.

A record that has more or fewer cells than the header, breaks the rules of quoting or is not UTF-8 is reported by its
line and a code, so that a reader can compare it with what the anonymizer rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import BinaryIO

from stream_anon.errors import StreamAnonError

LONGEST_LINE, MOST_LINES, LONGEST_CELL = 1 << 20, 100, 131_072
"""Bytes of a line, lines of a record and characters of a cell beyond which nothing is taken for a record."""

Bad = str
"""Why a line is no record: too_large, not_utf8, not_csv or cell_count."""


class NoTable(StreamAnonError):
    """The file is not a CSV table with a header line."""


class CsvTable:
    """One CSV file: the names of its columns, then its records.

    In a `raw` one, a cell over several lines that reads like rows was made by two stray quotes, and is none.
    """

    def __init__(self, path: Path, file: BinaryIO, raw: bool = True) -> None:
        self._raw = raw
        self.names: list[str] = []
        self._lines = enumerate(_lines(file), start=1)
        self._back: list[tuple[int, str | None]] = []  # lines to be read again, the next one last
        self._delimiter = ","
        self.names = self._header(path)

    def __iter__(self) -> Iterator[tuple[int, list[str] | Bad]]:
        """Yield the line of each record with its cells, or with why it is none."""
        width = len(self.names)
        while (found := self._record()) is not None:
            line, cells = found
            if isinstance(cells, str):
                yield line, cells
            elif not cells or (len(cells) == 1 != width and not cells[0].strip()):
                continue
            else:
                yield line, cells if len(cells) == width else "cell_count"

    def _header(self, path: Path) -> list[str]:
        while (line := self._next()) is not None:
            text = line[1]
            if text is not None and not text.strip():
                continue
            self._back.append(line)
            self._delimiter = max(",;\t", key=(text or "").count)
            found = self._record()
            if found is None or isinstance(found[1], str):
                raise NoTable(f"{path}: the first line must name the columns, in CSV and UTF-8")
            names = [name.strip() for name in found[1]]
            if len(set(names)) < len(names):
                raise NoTable(f"{path}: two columns have the same name")
            return names
        return []

    def _next(self) -> tuple[int, str | None] | None:
        return self._back.pop() if self._back else next(self._lines, None)

    def _record(self) -> tuple[int, list[str] | Bad] | None:
        """Read one record; of one that cannot be read only the first line is used up."""
        first = self._next()
        if first is None:
            return None
        line, text = first
        if text is None or len(text) > LONGEST_LINE:
            return line, "not_utf8" if text is None else "too_large"
        if '"' not in text:
            bare = text.rstrip("\r")
            bad = "\r" in bare or (
                len(bare) > LONGEST_CELL and max(map(len, bare.split(self._delimiter))) > LONGEST_CELL
            )
            return line, "not_csv" if bad else bare.split(self._delimiter) if bare else []
        taken: list[tuple[int, str | None]] = []
        size = len(text) + 1
        while (cells := _cells(text, self._delimiter)) is None:
            more = self._next() if len(taken) + 1 < MOST_LINES and size <= LONGEST_LINE else None
            if more is not None:
                taken.append(more)
            if more is None or more[1] is None or len(more[1]) > LONGEST_LINE:
                cells = "not_csv"
                break
            size += len(more[1]) + 1
            text += "\n" + more[1]
        if self._raw and taken and isinstance(cells, list) and len(cells) == len(self.names):
            cells = "not_csv" if any(map(self._like_rows, count(), cells)) else cells
        if cells == "not_csv":
            self._back += reversed(taken)
        return line, cells

    def _like_rows(self, place: int, cell: str) -> bool:
        """Tell whether each line break in a cell has just the cells of one row between this column and itself."""
        pieces = [piece.split("\n") for piece in cell.split(self._delimiter)]
        breaks = [i for i, piece in enumerate(pieces) for _ in piece[1:]]
        width = len(self.names)
        expected = [width - 1 - place + i * (width - 1) for i in range(len(breaks))]
        return width > 1 and bool(breaks) and breaks == expected and len(pieces) - 1 == breaks[-1] + place


def _cells(text: str, delimiter: str) -> list[str] | Bad | None:
    """Cut a record into its cells; None if a quote is still open at its end."""
    cells: list[str] = []
    at, end = 0, len(text.rstrip("\r"))
    while True:
        if text[at : at + 1] == '"':
            close = _closing(text, at + 1)
            if close < 0:
                return None
            cell, at = text[at + 1 : close].replace('""', '"'), close + 1
        else:
            stop = text.find(delimiter, at)
            stop = end if stop < 0 else stop
            cell, at = text[at:stop], stop
            if "\r" in cell or "\n" in cell:
                return "not_csv"
        if len(cell) > LONGEST_CELL:
            return "not_csv"
        cells.append(cell)
        if at >= end:
            return cells
        if text[at] != delimiter:
            return "not_csv"
        at += 1


def _closing(text: str, at: int) -> int:
    """Find the quote that closes a cell, -1 if none does; two in a row stand for one."""
    while True:
        at = text.find('"', at)
        if at < 0 or text[at + 1 : at + 2] != '"':
            return at
        at += 2


def _lines(file: BinaryIO) -> Iterator[str | None]:
    """Yield lines as text, None for one that is not UTF-8; of an overlong one, blanks of more than the limit."""
    first = True
    while line := file.readline(LONGEST_LINE + 2):
        if len(line.rstrip(b"\n")) > LONGEST_LINE:
            while not line.endswith(b"\n") and (line := file.readline(LONGEST_LINE + 2)):
                pass
            yield " " * (LONGEST_LINE + 1)
        else:
            try:
                text = line.removesuffix(b"\n").decode("utf-8")
                yield text.removeprefix("\ufeff") if first else text
            except UnicodeDecodeError:
                yield None
        first = False
