"""Reads the small delimited tables a policy names; a table is taken whole or refused with the place of each mistake."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stream_anon.errors import Diagnostic, PolicyError
from stream_anon.grammar.files import TABLE_LIMIT, read_text

_REMEDY = "name a file with lines, as docs/hierarchies.md shows; a relative path starts at the policy's folder"


@dataclass(frozen=True, slots=True)
class Cell:
    """The text between two delimiters, without its quotes, and where it stands in its line."""

    text: str
    column: int
    width: int


Line = tuple[int, list[Cell]]


def read_cells(path: Path, shown: str, delimiter: str) -> list[Line]:
    """All lines of a delimited file as (line number, cells), both counted from 1; blank lines at the end are dropped.

    A cell that holds the delimiter is quoted (`"a;b"`), a quote inside it doubled. `shown` names the file in errors.
    """
    text = read_text(path, shown, TABLE_LIMIT, _REMEDY)
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    found: list[Diagnostic] = []
    table: list[Line] = []
    for number, line in enumerate(lines, start=1):
        try:
            table.append((number, list(split(line, delimiter))))
        except _QuoteError as error:
            found.append(Diagnostic("bad-quote", error.reason, shown, number, error.column, hint=error.hint))
    if found:
        raise PolicyError(found)
    return table


def split(line: str, delimiter: str) -> Iterator[Cell]:
    """Return the cells of one line.

    >>> [(cell.text, cell.column) for cell in split('a;"b;c";d', ";")]
    [('a', 1), ('b;c', 3), ('d', 9)]
    """
    start = 0
    while True:
        if line.startswith('"', start):
            end = _closing_quote(line, start)
            text = line[start + 1 : end - 1].replace('""', '"')
            if end < len(line) and line[end] != delimiter:
                raise _QuoteError("text after a closing quote", end + 1, 'write a quote inside a cell twice: ""')
        else:
            end = line.find(delimiter, start)
            end = len(line) if end < 0 else end
            text = line[start:end]
        yield Cell(text, start + 1, max(end - start, 1))
        if end >= len(line):
            return
        start = end + 1


class _QuoteError(Exception):
    def __init__(self, reason: str, column: int, hint: str) -> None:
        super().__init__(reason)
        self.reason, self.column, self.hint = reason, column, hint


def _closing_quote(line: str, start: int) -> int:
    """Return the index after the quote that closes the one at `start`."""
    at = start + 1
    while True:
        at = line.find('"', at) + 1
        if at == 0:
            raise _QuoteError("a quote that is not closed on its line", start + 1, 'close it with "')
        if not line.startswith('"', at):
            return at
        at += 1


Check = Callable[[float], str]
"""Return what is wrong with a number, nothing if it is right."""


def count(number: float) -> str:
    """Tell what is wrong with a whole number from 1 on."""
    return "" if number >= 1 and number == int(number) else "must be a whole number, at least 1"


def zero_to_one(number: float) -> str:
    """Tell what is wrong with a number between 0 and 1."""
    return "" if 0 <= number <= 1 else "must be between 0 and 1"


def share(number: float) -> str:
    """Tell what is wrong with a share above 0."""
    return "" if 0 < number <= 1 else "must be above 0 and at most 1"


def not_negative(number: float) -> str:
    """Tell what is wrong with a number from 0 on."""
    return "" if number >= 0 else "must not be negative"


class ValueTable:
    """One table being read: values in the first column, a number in each other one, all mistakes collected."""

    def __init__(self, path: Path, shown: str, header: tuple[str, ...]) -> None:
        self._lines = read_cells(path, shown, ";")
        self._shown = shown
        self._header = header
        self._found: list[Diagnostic] = []

    def read(self, *checks: Check) -> dict[str, tuple[float, ...]]:
        """Value → its numbers, each accepted by the check of its column."""
        self._check_header()
        rows: dict[str, tuple[float, ...]] = {}
        first: dict[str, int] = {}
        for line, cells in self._lines[1:]:
            if len(cells) != len(self._header):
                wanted = f"{len(self._header)} cells ({';'.join(self._header)})"
                self._add("wrong-cell-count", f"this line has {len(cells)}, not {wanted}", line, cells[-1])
                continue
            value = cells[0].text
            if value in first:
                self._add("duplicate-value", f"this value is already on line {first[value]}", line, cells[0])
            first.setdefault(value, line)
            columns = zip(self._header[1:], cells[1:], checks, strict=True)
            rows[value] = tuple([self._number(name, cell, check, line) for name, cell, check in columns])
        if self._found:
            raise PolicyError(self._found)
        return rows

    def _check_header(self) -> None:
        line, cells = self._lines[0]
        if tuple(cell.text.strip() for cell in cells) != self._header:
            wanted = ";".join(self._header)
            self._add("wrong-header", f'the first line must be "{wanted}"', line, cells[0], f"add the line {wanted}")
            raise PolicyError(self._found)
        if len(self._lines) == 1:
            self._add("empty-file", "the table has a header and no lines", line, cells[0])

    def _number(self, name: str, cell: Cell, check: Check, line: int) -> float:
        try:
            number = float(cell.text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self._add("not-a-number", f"{name} must be a number", line, cell, "write it like 3 or 0.25")
        elif reason := check(number):
            self._add("out-of-range", f"{name} {reason}", line, cell)
        return number

    def _add(self, code: str, message: str, line: int, cell: Cell, hint: str = "") -> None:
        self._found.append(Diagnostic(code, message, self._shown, line, cell.column, cell.width, hint))
