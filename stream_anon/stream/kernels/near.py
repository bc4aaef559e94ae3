"""Compiled search for the rows near enough to a new row to grow a cluster of."""

from __future__ import annotations

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import DEPTH, HIGHEST, KIND, LADDER, SIZE, START, TABLE, UNITS, inner
from stream_anon.stream.kernels.boxes import widen_column

BLOCK = 16
"""Rows whose keys are compared at a time: few of them are alike, and most blocks are passed over."""


@inner
def widest(facts: Ints, values: Floats, share: float, q: int, limit: float) -> int:
    """Return the unit of a ladder that rows within the limit must share; 0 if they may be anywhere."""
    start, depth = facts[q, START], facts[q, DEPTH]
    if values[start] != 0.0 or share <= limit:
        return 0
    for step in range(depth):
        if share * values[start + depth - step] <= limit:
            return int(facts[q, UNITS + depth - 1 - step])
    return int(facts[q, UNITS])


@inner
def alike(
    facts: Ints, values: Floats, weight: Floats, least: Floats, order: Ints, limit: float, units: Ints, sizes: Ints
) -> int:
    """Compute how rows within the limit must be alike, because one column alone would exceed it.

    Units are 0 where nothing is known; `sizes` are the numbers of units, together no more than fit into one number. In
    so many columns, the first of `order`, they must be equal, which costs nothing there.
    """
    same, numbers = 0, 1.0
    for place in range(len(order)):
        q = order[place]
        units[q], sizes[q] = 0, facts[q, SIZE]
        if facts[q, KIND] == TABLE and weight[q] * least[q] > limit:
            units[q] = 1
        elif facts[q, KIND] == LADDER:
            units[q] = widest(facts, values, weight[q], q, limit)
            sizes[q] = facts[q, HIGHEST] // max(units[q], 1) + 2
        if units[q] and numbers * sizes[q] > 2.0**62:
            units[q] = 0
        if units[q]:
            numbers *= sizes[q]
            same += same == place and facts[q, KIND] == TABLE
    return same


@inner
def key_of(units: Ints, sizes: Ints, qi: Ints, slot: int) -> int:
    """Return one number for the units a row lies in."""
    key = 0
    for q in range(len(units)):
        if units[q]:
            key = key * sizes[q] + qi[slot, q] // units[q]
    return key


@inner
def near_rows(
    facts: Ints,
    values: Floats,
    weight: Floats,
    order: Ints,
    same: int,
    qi: Ints,
    slot: int,
    key: int,
    waiting: Ints,
    keys: Ints,
    length: int,
    limit: float,
    near: Ints,
    codes: Ints,
    costs: Floats,
    total: Floats,
) -> int:
    """Find the waiting rows that cost at most `limit` together with one row, in their order; return how many.

    First those with its key, then column by column, dropping rows as soon as they exceed the limit.
    """
    count = 0
    for first in range(0, length, BLOCK):
        last = min(first + BLOCK, length)
        found = False
        for i in range(first, last):
            found |= keys[i] == key
        if found:
            for i in range(first, last):
                near[count] = waiting[i]
                count += keys[i] == key
    for i in range(count):
        total[i] = 0.0
    for place in range(same, len(order)):
        q = order[place]
        for i in range(count):
            codes[i] = qi[near[i], q]
        widen_column(facts, values, weight, q, qi[slot, q], qi[slot, q], codes, count, costs)
        count = keep(costs, count, limit, near, total)
    return count


@inner
def keep(costs: Floats, length: int, limit: float, near: Ints, total: Floats) -> int:
    """Add the costs of one column, and keep the rows that stay within the limit."""
    kept = 0
    for i in range(length):
        cost = total[i] + costs[i]
        near[kept] = near[i]
        total[kept] = cost
        kept += cost <= limit
    return kept


@inner
def rekey(units: Ints, sizes: Ints, qi: Ints, waiting: Ints, length: int, keys: Ints) -> None:
    """Compute the keys of all waiting rows."""
    for i in range(length):
        keys[i] = key_of(units, sizes, qi, waiting[i])
