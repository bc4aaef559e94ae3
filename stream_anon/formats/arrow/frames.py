"""Rows of pandas, Polars and Arrow tables in memory, by column where that cannot change what a cell means."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from stream_anon.core.decode import Coded, Columnar, Payload
from stream_anon.formats.arrow.rows import coded

AT_ONCE = 65_536
"""Rows of a part."""

ABSENT = "absent"
Encode = Callable[[Mapping[str, Any]], Payload]


class FrameRows(Columnar):
    """Some rows of a frame. Cells count as in JSON: text is no number, NaN is a missing value.

    `column` gives an Arrow array, or None for what is no column of plain text, numbers or booleans; `records` gives the
    same rows as mappings, which `encode` makes payloads of, where such a column is asked for.
    """

    strict: ClassVar[bool] = True

    def __init__(
        self, size: int, column: Callable[[str], Any], records: Callable[[], list[Any]], encode: Encode
    ) -> None:
        self._size, self._column, self._records, self._encode = size, column, records, encode
        self._made: list[Payload] | None = None

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        return self._all()[place]

    def __iter__(self) -> Iterator[Payload]:
        return iter(self._all())

    def column(self, name: str) -> Coded | None:
        """Return the cells of a column, nothing but missing ones if there is no such column."""
        found = None if "." in name else self._column(name)  # with a dot it is a field inside another
        if found is None:
            return None
        return Coded([None], np.zeros(self._size, dtype=np.int64)) if isinstance(found, str) else coded(found)

    def _all(self) -> list[Payload]:
        if self._made is None:
            self._made = [self._encode(record) for record in self._records()]
        return self._made


def arrow_parts(table: Any, payload_of: Encode) -> Iterator[FrameRows]:
    """Yield the rows of an Arrow table."""
    import pyarrow as pa

    names = set(table.column_names)
    for batch in table.to_batches(max_chunksize=AT_ONCE):

        def column(name: str, batch: Any = batch) -> Any:
            if name not in names:
                return ABSENT
            found = batch.column(name)
            return found if _is_plain(pa, found.type) else None

        yield FrameRows(batch.num_rows, column, batch.to_pylist, payload_of)


def _is_plain(pa: Any, kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return bool(text or numbers or pa.types.is_boolean(kind))


def pandas_parts(table: Any, payload_of: Encode) -> Iterator[FrameRows]:
    """Yield the rows of a pandas frame; a column of objects is taken by column only if all of them are text."""
    import pandas
    import pyarrow as pa

    names = {str(name): name for name in table.columns}
    plain = {}
    for name in table.columns:
        kind = table[name].dtype
        text = pandas.api.types.infer_dtype(table[name], skipna=True) == "string"
        numbers = isinstance(kind, np.dtype) and kind.kind in "iufb" and kind != np.float16
        plain[name] = text or numbers
    for start in range(0, len(table), AT_ONCE):
        some = table.iloc[start : start + AT_ONCE]

        def column(name: str, some: Any = some) -> Any:
            if name not in names:
                return ABSENT
            try:
                return pa.array(some[names[name]], from_pandas=True) if plain[names[name]] else None
            except UnicodeEncodeError:  # half a character: only the rows with one are refused
                return None

        yield FrameRows(len(some), column, partial(some.to_dict, "records"), payload_of)
