"""The format of CSV: one record a line, the first line names the columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, ClassVar

from stream_anon.core.gate import Group
from stream_anon.formats.csv_records import CsvLines
from stream_anon.formats.format import Format, Part, flat
from stream_anon.formats.lines import Lines
from stream_anon.formats.text_file import read_lines

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
        self._writer: csv.DictWriter[str] | None = None

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        for group in groups:
            if self._writer is None:
                self._writer = csv.DictWriter(
                    self._text, _columns(group), lineterminator="\n", restval="", delimiter=self._delimiter
                )
                self._writer.writeheader()
            quote = self._quote
            self._writer.writerows({k: _cell(v, quote) for k, v in flat(record).items()} for record in group.records())

    def close(self) -> None:
        """Flush the text and detach: the file stays open for whoever opened it."""
        self._text.flush()
        self._text.detach()


def _columns(group: Group) -> list[str]:
    """Return the names of all columns: those of the policy, then the envelope's."""
    record = next(group.records())
    return [
        *(column.name for column in group.schema.quasi),
        *group.schema.published,
        *(f"_anon.{name}" for name in record["_anon"]),
    ]


def _cell(value: Any, quote: bool) -> Any:
    if isinstance(value, str):
        return f"'{value}" if quote and value.lstrip("'")[:1] in _FORMULA else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value


class CsvTable(Format):
    """CSV files, read as `pipe --csv` reads them, so that both reject the same lines."""

    name: ClassVar[str] = "csv"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    text: ClassVar[bool] = True
    packable: ClassVar[bool] = True
    continues: ClassVar[bool] = True

    def read(self, path: Path, at_once: int) -> Iterator[Part]:
        """Yield the records of a file."""
        return read_lines(path, lambda file: CsvLines(Lines(file, keep_blank=True), str(path)), at_once)

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> CsvWriter:
        """Return a writer of lines."""
        return CsvWriter(file, quote_formulas)


class TsvTable(CsvTable):
    """The same with tabs: read as CSV is, written with a tab between cells."""

    name: ClassVar[str] = "tsv"
    suffixes: ClassVar[tuple[str, ...]] = (".tsv",)

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> CsvWriter:
        """Return a writer of lines."""
        return CsvWriter(file, quote_formulas, delimiter="\t")
