"""What is written of groups that passed the gate: labels, records and bytes. Nothing here decides who may leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from stream_anon.core.batch import Batch, Objects
from stream_anon.core.hierarchy import Ints, Tree, ValueSet

if TYPE_CHECKING:
    from stream_anon.core.gate import Group
    from stream_anon.core.schema import Schema

_JSON = msgspec.json.Encoder()


def labels_of(group: Group) -> tuple[Any, ...]:
    """Return the published value of each quasi-identifier."""
    ends = zip(group.schema.quasi, group.low.tolist(), group.high.tolist(), strict=True)
    return tuple(
        column.hierarchy.label_of(group.rows.qi[:, q])
        if isinstance(column.hierarchy, ValueSet)
        else column.hierarchy.label(low, high)
        for q, (column, low, high) in enumerate(ends)
    )


def records_of(group: Group) -> Iterator[dict[str, Any]]:
    """Yield the records of a group, in the published order."""
    released, place = group.released, group.place
    template, labels, envelope = released.schema.template, labels_of(group), released.envelope(place)
    for row, cells in enumerate(values_of(group).tolist(), envelope.first):
        yield template.nested([*labels, *cells], envelope, row)


def encode_lines(groups: Sequence[Group]) -> bytes:
    """Write the records of all groups as JSON, each ended by a line feed; within a record there is none."""
    return b"\n".join([*chain.from_iterable(encode_all(groups)), b""])


def encode_all(groups: Sequence[Group]) -> Iterator[list[bytes]]:
    """Write the records of each group as JSON; neighbours that were released together are written together."""
    first = 0
    for last in range(1, len(groups) + 1):
        one, end = groups[last - 1], last == len(groups)
        if end or groups[last].released is not one.released or groups[last].place != one.place + 1:
            template = one.released.schema.template
            if template.flat:
                yield from template.written(one.released, groups[first].place, one.place + 1)
            else:
                yield from (list(map(_JSON.encode, records_of(group))) for group in groups[first:last])
            first = last


def values_of(group: Group) -> Objects:
    """Return what is published of a group's rows beside their labels, in the published order."""
    starts, place = group.released.starts, group.place
    return group.released.values[starts[place] : starts[place + 1]]


def raised_values(rows: Batch, shown: Ints, schema: Schema) -> Objects:
    """Return what is published of rows as it came, but for sensitive values shown as an ancestor."""
    values = rows.values.copy()
    for row, s in zip(*np.nonzero(shown != rows.sensitive), strict=True):
        tree = schema.sensitive[s].hierarchy
        assert isinstance(tree, Tree)  # noqa: S101 - only values in a tree can be raised
        values[row, s] = tree.labels[int(shown[row, s])]  # sensitive columns come first
    return values
