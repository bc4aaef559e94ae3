"""Likeness: in what rows must agree that cost little together, and a key for it."""

from __future__ import annotations

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import DEPTH, HIGHEST, KIND, LADDER, SIZE, START, TABLE, UNITS, inner


def widest(facts: Ints, values: Floats, share: float, q: int, limit: float) -> int:
    """Return the unit of a ladder that rows within the limit must share; 0 if they may be anywhere."""
    start, depth = int(facts[q, START]), int(facts[q, DEPTH])
    if values[start] != 0.0 or share <= limit:
        return 0
    for step in range(depth):
        if share * values[start + depth - step] <= limit:
            return int(facts[q, UNITS + depth - 1 - step])
    return int(facts[q, UNITS])


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
def keep(costs: Floats, length: int, limit: float, near: Ints, total: Floats) -> int:
    """Add the costs of one column, and keep the rows that stay within the limit."""
    kept = 0
    for i in range(length):
        cost = total[i] + costs[i]
        near[kept] = near[i]
        total[kept] = cost
        kept += cost <= limit
    return kept
