"""Classes whose columns become intervals or sets, compiled: the loss without hierarchies that L-clustering uses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import compiled, inner

WORD = 62
"""Values to a word of a set: the sign and one more bit are not used."""


class Table(NamedTuple):
    """The rows as dense codes; column q stands for positions `point[first[q] + code]`.

    An ordered column becomes an interval of codes; of another the set of its codes is kept in `words[q]` words, from
    `word[q]` on. `known` is the weighted uncertainty of 1, 2, ... values of a set, from `first[q]` on. Column q has
    `kinds[q]` values.
    """

    code: Ints
    point: Floats
    first: Ints
    kinds: Ints
    ordered: Ints
    weight: Floats
    entropy: bool
    word: Ints
    words: Ints
    known: Floats


class Groups(NamedTuple):
    """The classes: `low` and `high` codes of ordered columns, `mask` words of the others, sizes and losses per row."""

    low: Ints
    high: Ints
    mask: Ints
    size: Ints
    loss: Floats


def table_of(qi: Ints, ordered: list[bool], weights: Floats, entropy: bool) -> Table:
    """Lay out rows as a table of dense codes."""
    n, width = qi.shape
    code = np.empty((n, width), dtype=np.int64)
    points = []
    for q in range(width):
        found, code[:, q] = np.unique(qi[:, q], return_inverse=True)
        points.append(found.astype(np.float64))
    count = np.array([len(found) for found in points], dtype=np.int64)
    words = np.where(ordered, 0, -(-count // WORD)).astype(np.int64)
    first = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64)
    known = np.concatenate(
        [weights[q] * _uncertainty(np.arange(1, len(found) + 1), entropy) for q, found in enumerate(points)]
    )
    return Table(
        code=code,
        point=np.concatenate(points),
        first=first,
        kinds=count,
        ordered=np.array(ordered, dtype=np.int64),
        weight=np.asarray(weights, dtype=np.float64),
        entropy=entropy,
        word=np.concatenate([[0], np.cumsum(words)[:-1]]).astype(np.int64),
        words=words,
        known=known,
    )


def _uncertainty(size: Ints, entropy: bool) -> Floats:
    return np.asarray(np.log2(size) if entropy else size - 1.0, dtype=np.float64)


def room_for(table: Table, count: int) -> Groups:
    """Allocate room for this many classes."""
    width, words = table.code.shape[1], max(int(table.words.sum()), 1)
    return Groups(
        low=np.zeros((count, width), dtype=np.int64),
        high=np.zeros((count, width), dtype=np.int64),
        mask=np.zeros((count, words), dtype=np.int64),
        size=np.zeros(count, dtype=np.int64),
        loss=np.zeros(count),
    )


@inner
def bits(word: int) -> int:
    """Count the bits that are set."""
    count = 0
    while word:
        word &= word - 1
        count += 1
    return count


@inner
def interval_loss(table: Table, q: int, low: int, high: int) -> float:
    """Return the weighted uncertainty of an interval of codes; widths are counted in positions."""
    span = table.point[table.first[q] + high] - table.point[table.first[q] + low]
    return float(table.weight[q] * (np.log2(span + 1.0) if table.entropy else span))


@inner
def set_loss(table: Table, q: int, count: int) -> float:
    """Return the weighted uncertainty of a set of this many values."""
    return float(table.known[table.first[q] + count - 1])


@inner
def start_group(table: Table, groups: Groups, g: int, row: int) -> None:
    """Start class g with one row."""
    groups.size[g], groups.loss[g] = 1, 0.0
    for w in range(groups.mask.shape[1]):
        groups.mask[g, w] = 0
    for q in range(table.code.shape[1]):
        code = table.code[row, q]
        groups.low[g, q] = groups.high[g, q] = code
        if not table.ordered[q]:
            groups.mask[g, table.word[q] + code // WORD] |= 1 << (code % WORD)


@inner
def _members(table: Table, groups: Groups, g: int, q: int) -> int:
    count = 0
    for w in range(table.word[q], table.word[q] + table.words[q]):
        count += bits(groups.mask[g, w])
    return count


@inner
def price_group(table: Table, groups: Groups, g: int) -> None:
    """Set the loss per row of class g."""
    total = 0.0
    for q in range(table.code.shape[1]):
        if table.ordered[q]:
            total += interval_loss(table, q, groups.low[g, q], groups.high[g, q])
        else:
            total += set_loss(table, q, _members(table, groups, g, q))
    groups.loss[g] = total


@inner
def add_row(table: Table, groups: Groups, g: int, row: int) -> None:
    """Add a row to class g."""
    groups.size[g] += 1
    for q in range(table.code.shape[1]):
        code = table.code[row, q]
        groups.low[g, q], groups.high[g, q] = min(groups.low[g, q], code), max(groups.high[g, q], code)
        if not table.ordered[q]:
            groups.mask[g, table.word[q] + code // WORD] |= 1 << (code % WORD)
    price_group(table, groups, g)


@inner
def absorb(table: Table, groups: Groups, g: int, other: int) -> None:
    """Move all rows of another class into class g."""
    groups.size[g] += groups.size[other]
    for q in range(table.code.shape[1]):
        groups.low[g, q] = min(groups.low[g, q], groups.low[other, q])
        groups.high[g, q] = max(groups.high[g, q], groups.high[other, q])
    for w in range(groups.mask.shape[1]):
        groups.mask[g, w] |= groups.mask[other, w]
    price_group(table, groups, g)


@inner
def union_loss(table: Table, groups: Groups, g: int, other: int, limit: float) -> float:
    """Return the loss per row of two classes together, or something not below `limit`."""
    total = 0.0
    for q in range(table.code.shape[1]):
        if table.ordered[q]:
            low, high = min(groups.low[g, q], groups.low[other, q]), max(groups.high[g, q], groups.high[other, q])
            total += interval_loss(table, q, low, high)
        else:
            count = 0
            for w in range(table.word[q], table.word[q] + table.words[q]):
                count += bits(groups.mask[g, w] | groups.mask[other, w])
            total += set_loss(table, q, count)
        if total >= limit:
            return total
    return total


@compiled
def fill_costs(table: Table, groups: Groups, g: int, cost: Floats) -> None:
    """Compute what class g would lose per row in each column if it had to hold each of the column's values."""
    for q in range(table.code.shape[1]):
        first = table.first[q]
        if table.ordered[q]:
            for code in range(table.kinds[q]):
                cost[first + code] = interval_loss(table, q, min(groups.low[g, q], code), max(groups.high[g, q], code))
        else:
            size = _members(table, groups, g, q)
            for code in range(table.kinds[q]):
                there = groups.mask[g, table.word[q] + code // WORD] >> (code % WORD) & 1
                cost[first + code] = set_loss(table, q, size + 1 - there)
