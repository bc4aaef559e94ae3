"""Tables in memory: pandas, Polars and Arrow tables, or plain records; read as records, written back as they came."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any

import msgspec

from stream_anon.core.decode import Payload, Reject
from stream_anon.core.gate import Group
from stream_anon.formats.format import AT_ONCE, refuse_same_names

Records = Iterable[Mapping[str, Any] | bytes | str]
"""Plain records: mappings, or JSON text."""


def kind_of_frame(table: Any) -> str:
    """Name the library a table belongs to: `pandas`, `polars`, `arrow`, or `records` for anything else."""
    owner = type(table).__module__.partition(".")[0]
    return {"pandas": "pandas", "polars": "polars", "pyarrow": "arrow"}.get(owner, "records")


def records_of(table: Any) -> Iterator[Mapping[str, Any] | bytes | str]:
    """Yield the records of a table in memory; raise TypeError for what is one record, or a name, and no table.

    >>> list(records_of([{"a": 1}]))
    [{'a': 1}]
    """
    if isinstance(table, str | bytes | Mapping | os.PathLike):
        raise TypeError(f"records are needed, many of them, not one {type(table).__name__}: put one record into a list")
    match kind_of_frame(table):
        case "pandas":
            refuse_same_names("the table", [str(name) for name in table.columns])
            yield from table.to_dict("records")
        case "polars":
            yield from table.iter_rows(named=True)
        case "arrow":
            refuse_same_names("the table", table.column_names)
            for part in table.to_batches(max_chunksize=10_000):
                yield from part.to_pylist()
        case _:
            yield from table


def rows_of(table: Any) -> Iterator[Sequence[Payload]]:
    """Yield the rows of a table in memory, some at a time, as the decoder takes them: by column where there are any."""
    kind = kind_of_frame(table)
    if kind in ("pandas", "polars", "arrow") and _has_arrow():
        from stream_anon.formats.arrow.frames import arrow_parts, pandas_parts

        refuse_same_names(
            "the table", [str(name) for name in (table.column_names if kind == "arrow" else table.columns)]
        )
        if kind == "pandas":
            yield from pandas_parts(table, payload_of)
        else:
            yield from arrow_parts(table.to_arrow() if kind == "polars" else table, payload_of)
        return
    records = records_of(table)
    while payloads := [payload_of(record) for record in islice(records, AT_ONCE)]:
        yield payloads


def _has_arrow() -> bool:
    return find_spec("pyarrow") is not None


def frame_like(table: Any, groups: Sequence[Group]) -> Any:
    """Put the records of groups into a table of the kind that was given; plain records become a list."""
    kind = kind_of_frame(table)
    if kind in ("polars", "arrow") and groups and _has_arrow():
        from stream_anon.formats.arrow.published import published_table

        made = published_table(groups)
        if kind == "arrow":
            return made
        import polars

        return polars.from_arrow(made)
    records = [record for group in groups for record in group.records()]
    if kind == "records":
        return records
    if kind == "pandas":
        import pandas

        return pandas.DataFrame(records)
    if kind == "polars":
        import polars

        return polars.DataFrame(records)
    import pyarrow  # type: ignore[import-untyped,unused-ignore]

    return pyarrow.Table.from_pylist(records)


def payload_of(record: Mapping[str, Any] | bytes | str) -> Payload:
    """Return a record as the decoder takes it; one that cannot be written as JSON is refused, not raised.

    >>> payload_of({"a": 1}), payload_of('{"a": 1}'), payload_of({"a": object()})
    (b'{"a":1}', b'{"a": 1}', <Reject.WRONG_TYPE: 'wrong_type'>)
    """
    if isinstance(record, bytes):
        return record
    try:
        return record.encode() if isinstance(record, str) else msgspec.json.encode(record, enc_hook=_plain)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return Reject.WRONG_TYPE


def _plain(value: Any) -> Any:
    """Turn a scalar of numpy, or a time stamp of pandas, into what JSON knows."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(type(value).__name__)
