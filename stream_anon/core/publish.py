"""What is written of groups that passed the gate: labels, records and bytes. Nothing here decides who may leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from stream_anon.core.batch import Batch, Objects
from stream_anon.core.hierarchy import Ints, Tree, ValueSet

if TYPE_CHECKING:
    from stream_anon.core.gate import Group, Released
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


def together(groups: Sequence[Group]) -> Iterator[tuple[Released, list[int]]]:
    """Yield runs of groups that were released together, as their places in what was released."""
    for _, run in groupby(groups, key=lambda group: id(group.released)):
        found = list(run)
        yield found[0].released, [group.place for group in found]


def rows_of(starts: Sequence[int], places: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the rows of some groups, one group after the other, and where each begins among them."""
    if 4 * len(places) > len(starts):
        every, chosen = np.array(starts), np.array(places)
        first, sizes = every[chosen], every[chosen + 1] - every[chosen]
    else:
        first = np.array([starts[place] for place in places], dtype=np.int64)
        sizes = np.array([starts[place + 1] for place in places], dtype=np.int64) - first
    begins = np.concatenate([[0], np.cumsum(sizes)])
    return np.repeat(first - begins[:-1], sizes) + np.arange(begins[-1]), begins


class PublishedColumns(NamedTuple):
    """What is published of some groups, by column: `sizes` rows of each group, one group after the other.

    `labels` and the columns of the envelope have an entry per group, `values` and `row` one per row.
    """

    sizes: Ints
    labels: dict[str, list[Any]]
    values: dict[str, Objects]
    policy: str
    group: list[str]
    row: Ints
    size: list[int]
    subjects: list[int | None]
    loss: list[float]


def columns_of(released: Released, places: Sequence[int]) -> PublishedColumns:
    """Return the columns of some groups."""
    schema, (rows, begins) = released.schema, rows_of(released.starts, places)
    labels: dict[str, list[Any]] = {}
    for q, column in enumerate(schema.quasi):
        hierarchy = column.hierarchy
        if isinstance(hierarchy, ValueSet):
            codes = released.rows.qi[rows, q]
            labels[column.name] = [hierarchy.label_of(codes[a:b]) for a, b in pairwise(begins.tolist())]
        else:
            label = lru_cache(maxsize=65_536)(hierarchy.label)
            labels[column.name] = list(map(label, released.low[places, q].tolist(), released.high[places, q].tolist()))
    sizes, before = np.diff(begins), 0 if released.earlier is None else len(released.earlier)
    people: list[int | None] = list(map(released.people.__getitem__, places)) if schema.subject else [None] * len(sizes)
    return PublishedColumns(
        sizes=sizes,
        labels=labels,
        values={name: released.values[rows, p] for p, name in enumerate(schema.published)},
        policy=schema.template.policy,
        group=list(map(released.ids.__getitem__, places)),
        row=np.arange(before, before + len(rows)) - np.repeat(begins[:-1], sizes),
        size=(sizes + before).tolist(),
        subjects=people,
        loss=list(map(released.told.__getitem__, places)),
    )


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
