"""Tables in Avro object files, by fastavro where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from stream_anon.auditor.reading.chunks import AT_ONCE
from stream_anon.auditor.reading.formats.base import Bad, Columns, TableFormat, Unreadable


class AvroFile(TableFormat):
    """Avro object files; fields of records become columns of their own, a pair of ends becomes a list."""

    suffixes: ClassVar[tuple[str, ...]] = (".avro",)

    def columns(self, path: Path, encoding: str | None = None) -> Iterator[tuple[Columns, list[Bad]]]:
        """Yield columns of plain values, nested ones by dotted name."""
        try:
            import fastavro
        except ImportError:
            raise Unreadable("Avro needs fastavro: pip install 'stream-anon[avro]'") from None
        with path.open("rb") as file:
            try:
                reader = fastavro.reader(file)
                names = _names(reader.writer_schema)
                rows: Iterator[Any] = iter(reader)
                while part := list(islice(rows, AT_ONCE)):
                    cells = [_flat(row, names, "") for row in part]
                    every = {name for row in cells for name in row}
                    yield {name: [row.get(name) for row in cells] for name in sorted(every)}, []
            except OSError:
                raise
            except Exception:  # whatever a library makes of another kind of file
                raise Unreadable(f"{path}: not an Avro file, or cut off") from None


def _names(schema: Any) -> dict[str, str]:
    """Return the names that a schema had to spell otherwise, with what they were: it is their documentation."""
    found: dict[str, str] = {}
    for field in schema.get("fields", ()) if isinstance(schema, dict) else ():
        if "doc" in field:
            found[field["name"]] = field["doc"]
        kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
        for kind in kinds:
            found |= _names(kind)
    return found


def _flat(value: Any, names: dict[str, str], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, below in value.items():
        path = prefix + names.get(name, name)
        if isinstance(below, dict) and below.keys() == {"low", "high"}:
            found[path] = [below["low"], below["high"]]
        elif isinstance(below, dict):
            found |= _flat(below, names, f"{path}.")
        elif isinstance(below, date):
            found[path] = below.isoformat()
        else:
            found[path] = float(below) if isinstance(below, Decimal) else below
    return found
