"""Published groups as Arrow tables, column by column: a label is converted once per group, not once per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Interval
from stream_anon.core.publish import PublishedColumns, columns_of, together
from stream_anon.core.record_template import ENVELOPE
from stream_anon.core.schema import Schema


def published_table(groups: Sequence[Group], schema: Any = None) -> Any:
    """Return the records of groups as an Arrow table; without a schema, types are those that the values show."""
    import pyarrow as pa

    if not groups[0].schema.template.flat:
        return pa.Table.from_pylist([record for group in groups for record in group.records()], schema=schema)
    tables = [_table(pa, columns_of(released, places), schema) for released, places in together(groups)]
    if schema is None and len(tables) > 1:  # what one part shows of the types may be more than another does
        schema = pa.unify_schemas([table.schema for table in tables])
        tables = [_table(pa, columns_of(released, places), schema) for released, places in together(groups)]
    return pa.concat_tables(tables)


def _table(pa: Any, found: PublishedColumns, schema: Any) -> Any:
    group = pa.array(np.repeat(np.arange(len(found.sizes)), found.sizes))
    types = {field.name: field.type for field in schema} if schema is not None else {}
    columns = {name: pa.array(labels, types.get(name)).take(group) for name, labels in found.labels.items()}
    columns |= {name: pa.array(values.tolist(), types.get(name)) for name, values in found.values.items()}
    text, whole = pa.string(), pa.int64()
    facts = {
        "policy": pa.array([found.policy] * len(found.sizes), text).take(group),
        "group": pa.array(found.group, text).take(group),
        "row": pa.array(found.row, whole),
        "size": pa.array(found.size, whole).take(group),
        "subjects": pa.array(found.subjects, whole).take(group),
        "loss": pa.array(found.loss, pa.float64()).take(group),
    }
    columns[ENVELOPE] = pa.StructArray.from_arrays(list(facts.values()), names=list(facts))
    return pa.table(columns)


def solid(shown: Any, groups: Sequence[Group]) -> Any:
    """Return the schema of a file: intervals by their policy, others as shown; text where no value showed a type."""
    import pyarrow as pa

    return pa.schema([pa.field(field.name, _solid(pa, field, groups[0].schema)) for field in shown])


def _solid(pa: Any, column: Any, schema: Schema) -> Any:
    if column.name == ENVELOPE:  # without a subject no record shows the type of `subjects`
        kinds = {pa.int64(): ("row", "size", "subjects"), pa.string(): ("policy", "group"), pa.float64(): ("loss",)}
        types = {name: kind for kind, names in kinds.items() for name in names}
        return pa.struct([(fact.name, types[fact.name]) for fact in column.type])
    for quasi in schema.quasi:
        if quasi.name == column.name and isinstance(quasi.hierarchy, Interval):
            return pa.list_(pa.float64() if quasi.type == "number" else pa.int64())
    return pa.string() if pa.types.is_null(column.type) else column.type
