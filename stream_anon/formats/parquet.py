"""The format of Parquet, by pyarrow where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, ClassVar

import msgspec
import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Interval
from stream_anon.core.record_template import ENVELOPE
from stream_anon.core.schema import Schema
from stream_anon.formats.format import Format, Part, TableError, refuse_same_names

_AT_ONCE = 10_000
"""Records of a row group, always as many, so that a file depends on its records alone; the first show the types."""


class ParquetWriter:
    """A writer with intervals and sets as lists; records are held back until they fill a row group."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._held: list[dict[str, Any]] = []
        self._schema: Schema | None = None
        self._writer: Any = None

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups; those that do not fill a row group wait."""
        for group in groups:
            self._schema = group.schema
            self._held += map(msgspec.to_builtins, group.records())
        while len(self._held) >= _AT_ONCE:
            self._write_held()

    def _write_held(self) -> None:
        pa = arrow()
        records, self._held = self._held[:_AT_ONCE], self._held[_AT_ONCE:]
        assert self._schema is not None  # noqa: S101 - records came with it
        try:
            if self._writer is None:
                first = pa.Table.from_pylist(records).schema
                types = [pa.field(f.name, _solid(pa, f, self._schema)) for f in first]
                self._writer = pa.parquet.ParquetWriter(self._file, pa.schema(types))
            table = pa.Table.from_pylist(records, schema=self._writer.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise TableError("a column has values of different types: Parquet cannot hold it, CSV can") from None
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the rest and the end of the file."""
        if self._held:
            self._write_held()
        if self._writer is not None:
            self._writer.close()


def _solid(pa: Any, column: Any, schema: Schema) -> Any:
    """Return a column's type: of an interval by its policy, of others by the values; text where there were none."""
    if column.name == ENVELOPE:  # without a subject no record shows the type of `subjects`
        kinds = {pa.int64(): ("row", "size", "subjects"), pa.string(): ("policy", "group"), pa.float64(): ("loss",)}
        types = {name: kind for kind, names in kinds.items() for name in names}
        return pa.struct([(fact.name, types[fact.name]) for fact in column.type])
    for quasi in schema.quasi:
        if quasi.name == column.name and isinstance(quasi.hierarchy, Interval):
            return pa.list_(pa.float64() if quasi.type == "number" else pa.int64())
    return pa.string() if pa.types.is_null(column.type) else column.type


class Parquet(Format):
    """Parquet files; structures are read as objects are in JSON, intervals and sets are written as lists."""

    name: ClassVar[str] = "parquet"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)
    continues: ClassVar[bool] = True

    def read(self, path: Path, at_once: int) -> Iterator[Part]:
        """Yield the rows of a file."""
        parquet = arrow().parquet
        with path.open("rb") as raw:
            try:
                file = parquet.ParquetFile(raw)
                refuse_same_names(str(path), list(_paths(file.schema_arrow)))
                total, number = max(file.metadata.num_rows, 1), 1
                for part in file.iter_batches(batch_size=at_once):
                    cells = [_as_json(row) for row in part.to_pylist()]
                    numbers = np.arange(number, number + len(cells))
                    yield Part(number, numbers, cells, (number - 1 + len(cells)) / total)
                    number += len(cells)
            except arrow().ArrowInvalid:
                raise TableError(f"{path}: not a Parquet file") from None

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> ParquetWriter:
        """Return a writer of row groups."""
        return ParquetWriter(file)


def _paths(fields: Iterable[Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of columns, and of the fields inside them."""
    for field in fields:
        yield f"{prefix}{field.name}"
        if field.type.num_fields and hasattr(field.type, "field"):
            yield from _paths(map(field.type.field, range(field.type.num_fields)), f"{prefix}{field.name}.")


def _as_json(value: Any) -> Any:
    """Return a cell as JSON would hold it: dates and instants as text, decimals as numbers, no nulls in objects."""
    if isinstance(value, dict):
        return {name: _as_json(cell) for name, cell in value.items() if cell is not None}
    if isinstance(value, date):  # an instant is a date too
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def arrow() -> Any:
    """Import the library that reads and writes Parquet."""
    try:
        import pyarrow  # type: ignore[import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise TableError("Parquet needs pyarrow: pip install 'stream-anon[parquet]'") from None
    return pyarrow
