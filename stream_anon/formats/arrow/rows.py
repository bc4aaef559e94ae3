"""Rows of an Arrow table for the decoder: by column where the types are plain, as records where they are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from stream_anon.core.decode import Coded, Columnar

FEW = 1_000
"""Cells by which a column is taken for one whose values are all different."""


class ArrowRows(Columnar):
    """The rows of a record batch. A cell reads as JSON would hold it, whichever way it is asked for.

    Text, numbers, booleans, dates and decimals are dictionaries of their different values; structures, lists and bytes
    are known by row only.
    """

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._rows: list[dict[str, Any]] | None = None
        self._places = {name: place for place, name in enumerate(batch.schema.names)}

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def __getitem__(self, place: Any) -> Any:
        if self._rows is None and not isinstance(place, slice):
            [row] = self._batch.slice(place, 1).to_pylist()
            return as_json(row)
        return self._all()[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def column(self, name: str) -> Coded | None:
        """Return the cells of a column; of a name with dots that is no column, a row may hold a field."""
        place = self._places.get(name)
        if place is None:
            nested = "." in name and name.partition(".")[0] in self._places
            return None if nested else Coded([None], np.zeros(len(self), dtype=np.int64))
        return coded(self._batch.column(place))

    def _all(self) -> list[dict[str, Any]]:
        if self._rows is None:
            self._rows = [as_json(row) for row in self._batch.to_pylist()]
        return self._rows


def coded(column: Any) -> Coded | None:
    """Return an Arrow array as codes and different values; None for types that hold others."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return Coded([None], np.zeros(len(column), dtype=np.int64))
    if pa.types.is_floating(kind):
        return _coded_floats(column.cast(pa.float64()))
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)  # a dictionary may name one value twice, or null
    if pa.types.is_nested(column.type) or not _is_plain(pa, column.type):
        return None
    if pa.types.is_string(column.type) and _all_differ(column.slice(0, FEW)):
        return Coded(column.to_pylist(), np.arange(len(column)))  # names of people, say: there is nothing to be saved
    found = column.dictionary_encode()
    values = found.dictionary.to_pylist()
    if not isinstance(values[0] if values else None, str | int | None):
        values = [as_json(value) for value in values]
    if not found.null_count:
        return Coded(values, found.indices.to_numpy().astype(np.int64))
    codes = found.indices.fill_null(len(values)).to_numpy().astype(np.int64)
    return Coded([*values, None], codes)


def _all_differ(column: Any) -> bool:
    return len(column) == FEW and len(set(column.to_pylist())) == FEW


def _is_plain(pa: Any, kind: Any) -> bool:
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or kind == pa.string_view()
    dates = types.is_date(kind) or types.is_timestamp(kind)
    return bool(text or dates or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _coded_floats(column: Any) -> Coded:
    """Tell floats apart by their bits: 0.0 and -0.0 are equal, and not the same."""
    bits = column.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
    different, codes = np.unique(bits, return_inverse=True)
    values: list[Any] = different.view(np.float64).tolist()
    if column.null_count:
        codes = np.where(column.is_null().to_numpy(zero_copy_only=False), len(values), codes)
        values.append(None)
    return Coded(values, codes.astype(np.int64))


def as_json(value: Any) -> Any:
    """Return a cell as JSON would hold it: dates and instants as text, decimals as numbers, no nulls in objects."""
    if isinstance(value, dict):
        return {name: as_json(cell) for name, cell in value.items() if cell is not None}
    if isinstance(value, date):  # an instant is a date too
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def paths(fields: Iterable[Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of columns, and of the fields inside them."""
    for field in fields:
        yield f"{prefix}{field.name}"
        if field.type.num_fields and hasattr(field.type, "field"):
            yield from paths(map(field.type.field, range(field.type.num_fields)), f"{prefix}{field.name}.")
