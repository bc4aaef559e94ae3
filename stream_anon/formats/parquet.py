"""The format of Parquet, by pyarrow where it is installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.formats.arrow.published import published_table, solid
from stream_anon.formats.arrow.rows import ArrowRows, paths
from stream_anon.formats.format import Format, Part, TableError, refuse_same_names

_AT_ONCE = 10_000
"""Records with which a row group is full, so that a file depends on its groups alone; the first ones show the types."""


class ParquetWriter:
    """A writer with intervals and sets as lists; groups are held back until they fill a row group."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._held: list[Group] = []
        self._count = 0
        self._writer: Any = None

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups; those that do not fill a row group wait."""
        for group in groups:
            self._held.append(group)
            self._count += len(group)
            if self._count >= _AT_ONCE:
                self._write_held()

    def _write_held(self) -> None:
        pa = arrow()
        try:
            if self._writer is None:
                self._writer = pa.parquet.ParquetWriter(
                    self._file, solid(published_table(self._held).schema, self._held)
                )
            table = published_table(self._held, self._writer.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise TableError("a column has values of different types: Parquet cannot hold it, CSV can") from None
        self._writer.write_table(table)
        self._held, self._count = [], 0

    def close(self) -> None:
        """Write the rest and the end of the file."""
        if self._held:
            self._write_held()
        if self._writer is not None:
            self._writer.close()


class Parquet(Format):
    """Parquet files; structures are read as objects are in JSON, intervals and sets are written as lists."""

    name: ClassVar[str] = "parquet"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)
    continues: ClassVar[bool] = True

    def read(self, path: Path, at_once: int, encoding: str | None = None) -> Iterator[Part]:
        """Yield the rows of a file."""
        parquet = arrow().parquet
        with path.open("rb") as raw:
            try:
                file = parquet.ParquetFile(raw)
                refuse_same_names(str(path), list(paths(file.schema_arrow)))
                total, number = max(file.metadata.num_rows, 1), 1
                for part in file.iter_batches(batch_size=at_once):
                    rows = ArrowRows(part)
                    yield Part(number, np.arange(number, number + len(rows)), rows, (number - 1 + len(rows)) / total)
                    number += len(rows)
            except arrow().ArrowInvalid:
                raise TableError(f"{path}: not a Parquet file: save it as one, or name it by its own kind") from None

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> ParquetWriter:
        """Return a writer of row groups."""
        return ParquetWriter(file)


def arrow() -> Any:
    """Import the library that reads and writes Parquet."""
    try:
        import pyarrow  # type: ignore[import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise TableError("Parquet needs pyarrow: pip install 'stream-anon[parquet]'") from None
    return pyarrow
