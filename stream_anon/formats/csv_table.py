"""The format of CSV: one record a line, the first line names the columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.publish import PublishedColumns, columns_of, together
from stream_anon.formats.csv_records import CsvLines
from stream_anon.formats.format import Format, Part, TableError
from stream_anon.formats.packing import BrokenArchiveError, opened
from stream_anon.formats.text.lines import Lines

_FORMULA = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What begins a formula in some spreadsheet: signs, their full-width forms, and blanks before them."""


class CsvWriter:
    """A writer of one record a line, nested fields by dotted name; an interval or a set is written as JSON: `[50, 59]`.

    Text that a spreadsheet would run as a formula gets a `'` in front, unless `quote_formulas` is off.
    """

    def __init__(self, file: IO[bytes], quote_formulas: bool = True, delimiter: str = ",") -> None:
        self._quote = quote_formulas
        self._delimiter = delimiter
        self._text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        self._writer: Any = None

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        for released, places in together(groups):
            columns = _columns(columns_of(released, places), self._quote)
            if self._writer is None:
                self._writer = csv.writer(self._text, lineterminator="\n", delimiter=self._delimiter)
                self._writer.writerow(columns)
            self._writer.writerows(zip(*columns.values(), strict=True))

    def close(self) -> None:
        """Flush the text and detach: the file stays open for whoever opened it."""
        self._text.flush()
        self._text.detach()


def _columns(found: PublishedColumns, quote: bool) -> dict[str, Iterable[Any]]:
    """Return the cells of all columns: those of the policy, then the envelope's."""
    cells: dict[str, Iterable[Any]] = {}
    sizes = found.sizes.tolist()
    for name, labels in found.labels.items():
        cells[name] = _repeated([_cell(label, quote) for label in labels], sizes)
    for name, values in found.values.items():
        cells[name] = [_cell(value, quote) for value in values.tolist()]
    cells["_anon.policy"] = _repeated([_cell(found.policy, quote)] * len(sizes), sizes)
    cells["_anon.group"] = _repeated([_cell(group, quote) for group in found.group], sizes)
    cells["_anon.row"] = found.row.tolist()
    for name, facts in (("size", found.size), ("subjects", found.subjects), ("loss", found.loss)):
        cells[f"_anon.{name}"] = _repeated(facts, sizes)
    return cells


def _repeated(facts: Sequence[Any], sizes: Sequence[int]) -> Iterable[Any]:
    """Yield each group's fact once per row."""
    return chain.from_iterable(map(repeat, facts, sizes))


def _cell(value: Any, quote: bool) -> Any:
    if isinstance(value, str):
        return f"'{value}" if quote and value.lstrip("'")[:1] in _FORMULA else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value


class _Lines(NamedTuple):
    """What a writer of CSV writes to: a function that takes each line."""

    write: Callable[[str], object]


def _parts(path: Path, at_once: int, encoding: str | None) -> Iterator[Part]:
    """Yield the records of a file, which may be packed, by column where its lines are plain."""
    first = 1
    with opened(path) as file:
        source = CsvLines(Lines(file, keep_blank=True, encoding=encoding, name=str(path)), str(path))
        while not source.ended:
            try:
                numbers, rows = source.read_block(at_once)
            except BrokenArchiveError as error:
                raise TableError(f"{path}: {error} after line {source.count.read:,}") from None
            for start in range(0, len(rows), at_once):
                some = rows if len(rows) <= at_once else rows[start : start + at_once]
                yield Part(first, numbers[start : start + at_once], some, file.reached, source.count)
                first += len(some)
        yield Part(first, np.empty(0, dtype=np.int64), [], 1.0, source.count)


class CsvTable(Format):
    """CSV files, read as `pipe --csv` reads them, so that both reject the same lines."""

    name: ClassVar[str] = "csv"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    text: ClassVar[bool] = True
    packable: ClassVar[bool] = True
    continues: ClassVar[bool] = True

    def read(self, path: Path, at_once: int, encoding: str | None = None) -> Iterator[Part]:
        """Yield the records of a file."""
        return _parts(path, at_once, encoding)

    delimiter: ClassVar[str] = ","

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> CsvWriter:
        """Return a writer of lines."""
        return CsvWriter(file, quote_formulas, self.delimiter)

    def pieces(self, groups: Sequence[Group], quote_formulas: bool = True) -> tuple[bytes, list[bytes]]:
        """Return the line of names, and the lines of each group."""
        rows: list[str] = []
        writer = csv.writer(_Lines(rows.append), lineterminator="\n", delimiter=self.delimiter)
        head, found = b"", []
        for released, places in together(groups):
            columns = columns_of(released, places)
            cells = _columns(columns, quote_formulas)
            writer.writerow(cells)
            head = rows[0].encode()
            rows.clear()
            writer.writerows(zip(*cells.values(), strict=True))
            ends = np.cumsum(columns.sizes).tolist()
            found += ["".join(rows[a:b]).encode() for a, b in pairwise([0, *ends])]
            rows.clear()
        return head, found


class TsvTable(CsvTable):
    """The same with tabs: read as CSV is, written with a tab between cells."""

    name: ClassVar[str] = "tsv"
    suffixes: ClassVar[tuple[str, ...]] = (".tsv",)

    delimiter: ClassVar[str] = "\t"
