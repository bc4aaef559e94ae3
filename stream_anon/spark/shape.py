"""The columns of a published DataFrame: their types follow from the policy and the frame, before any row is read."""

from __future__ import annotations

from typing import Any

from stream_anon.core.hierarchy import Interval, ValueSet
from stream_anon.core.record_template import ENVELOPE
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported


def arrow_shape(schema: Schema, types: dict[str, Any]) -> Any:
    """Return the Arrow schema of published records; `types` are those of the frame's columns."""
    import pyarrow as pa

    fields = []
    for quasi in schema.quasi:
        if isinstance(quasi.hierarchy, Interval):
            fields.append((quasi.name, pa.list_(pa.float64() if quasi.type == "number" else pa.int64())))
        else:
            fields.append((quasi.name, pa.list_(pa.string()) if isinstance(quasi.hierarchy, ValueSet) else pa.string()))
    for name in schema.published:
        kind = types.get(name)
        plain = kind is not None and name not in schema.actions and (pa.types.is_integer(kind) or kind in _kept(pa))
        fields.append((name, kind if plain else pa.string()))
        if kind is not None and not plain and not (pa.types.is_string(kind) or name in schema.actions):
            raise Unsupported(
                f"{name}: columns of type {kind} cannot be published through Spark: cast it to string first"
            )
    whole, text = pa.int64(), pa.string()
    facts = [("policy", text), ("group", text), ("row", whole), ("size", whole), ("subjects", whole)]
    return pa.schema([*fields, (ENVELOPE, pa.struct([*facts, ("loss", pa.float64())]))])


def _kept(pa: Any) -> tuple[Any, ...]:
    return (pa.string(), pa.bool_(), pa.float64(), pa.float32())


def types_of(frame: Any) -> dict[str, Any]:
    """Return the Arrow types of the columns of a frame, given its Spark schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return {field.name: field.type for field in to_arrow_schema(frame)}


def spark_shape(shape: Any) -> Any:
    """Return an Arrow schema as one of Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(shape)
