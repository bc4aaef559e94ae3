"""Tables in CSV: every value is text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from stream_anon.auditor.reading.chunks import AT_ONCE, parts
from stream_anon.auditor.reading.formats.base import Bad, Columns, TableFormat
from stream_anon.auditor.reading.formats.csv_rows import CsvTable
from stream_anon.auditor.reading.unpacked import open_file

_FORMULA = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


class CsvFile(TableFormat):
    """CSV and TSV files; the first line names the columns."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv")
    typed: ClassVar[bool] = False
    packable: ClassVar[bool] = True

    def columns(self, path: Path, encoding: str | None = None) -> Iterator[tuple[Columns, list[Bad]]]:
        """Yield columns of text, some records at a time, and which lines are not records.

        A line that is no record has no value in any column.
        """
        return self._columns(path, raw=True, encoding=encoding)

    def _columns(self, path: Path, raw: bool, encoding: str | None = None) -> Iterator[tuple[Columns, list[Bad]]]:
        with open_file(path, encoding) as file:
            table = CsvTable(path, file, raw)
            nothing = [None] * len(table.names)
            for rows in parts(table, AT_ONCE):
                cells = [nothing if isinstance(row, str) else row for _, row in rows]
                bad = [Bad(i, line, row) for i, (line, row) in enumerate(rows) if isinstance(row, str)]
                columns = list(zip(*cells, strict=True)) if table.names else []
                yield {name: list(column) for name, column in zip(table.names, columns, strict=True)}, bad

    def published(self, path: Path) -> Iterator[tuple[Columns, list[Bad]]]:
        """Yield the columns without the marks that keep spreadsheets from running cells."""
        for columns, bad in self._columns(path, raw=False):
            yield {name: [cell and unquoted(cell) for cell in cells] for name, cells in columns.items()}, bad


def unquoted(cell: str) -> str:
    """Return a cell without the mark that keeps spreadsheets from running it as a formula.

    >>> unquoted("'=1+1"), unquoted("''@x"), unquoted("'tis"), unquoted("-1")
    ('=1+1', "'@x", "'tis", '-1')
    """
    return cell[1:] if cell[:1] == "'" and cell.lstrip("'")[:1] in _FORMULA else cell
