"""Tables in Parquet, by pyarrow where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from stream_anon.auditor.reading.chunks import AT_ONCE
from stream_anon.auditor.reading.formats.base import Bad, Columns, TableFormat, Unreadable


class ParquetFile(TableFormat):
    """Parquet files; fields of structures become columns of their own."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)

    def columns(self, path: Path, encoding: str | None = None) -> Iterator[tuple[Columns, list[Bad]]]:
        """Yield columns of plain values, nested ones by dotted name."""
        try:
            import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
            import pyarrow.parquet as pq  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            raise Unreadable("Parquet needs pyarrow: pip install 'stream-anon[parquet]'") from None
        with path.open("rb") as raw:
            try:
                for part in pq.ParquetFile(raw).iter_batches(batch_size=AT_ONCE):
                    table = pa.Table.from_batches([part])
                    while any(pa.types.is_struct(kind) for kind in table.schema.types):
                        table = table.flatten()
                    if len(set(table.column_names)) < table.num_columns:
                        raise Unreadable(f"{path}: two columns have the same name: rename one")
                    yield {name: table.column(i).to_pylist() for i, name in enumerate(table.column_names)}, []
            except pa.ArrowInvalid:
                raise Unreadable(f"{path}: not a Parquet file: save it as one, or name it by its own kind") from None
