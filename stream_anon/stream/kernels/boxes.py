"""Compiled prices of boxes widened by rows."""

from __future__ import annotations

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import DEPTH, HIGHEST, KIND, LADDER, LOWEST, SIZE, START, TABLE, UNITS, inner, price


@inner
def union(facts: Ints, values: Floats, weight: Floats, qi: Ints, slot: int, low: Ints, high: Ints) -> float:
    """Return the price of a box widened to hold a row."""
    total = 0.0
    for q in range(len(weight)):
        at = qi[slot, q]
        total += weight[q] * price(facts, values, q, min(low[q], at), max(high[q], at))
    return total


@inner
def widen_column(
    facts: Ints, values: Floats, share: float, q: int, a: int, codes: Ints, count: int, costs: Floats
) -> None:
    """Compute the cost of the position `a` of column q together with each of the codes: short loops, no branches."""
    kind, start = facts[q, KIND], facts[q, START]
    if kind == TABLE:
        size = facts[q, SIZE]
        for i in range(count):  # the table is symmetric: no need to know which is lower
            costs[i] = share * values[start + a * size + codes[i]]
    elif kind == LADDER and a < facts[q, HIGHEST]:
        climb_ladder(facts, values, share, q, a, codes, count, costs)
    else:
        for i in range(count):
            costs[i] = share * price(facts, values, q, min(a, codes[i]), max(a, codes[i]))


@inner
def climb_ladder(
    facts: Ints, values: Floats, share: float, q: int, a: int, codes: Ints, count: int, costs: Floats
) -> None:
    """Do the same as `widen_column` for units that nest, from the widest down to the finest.

    Whether a code lies in the same unit is two comparisons, where to ask for each price would be several divisions.
    """
    start, depth, lowest, highest = facts[q, START], facts[q, DEPTH], facts[q, LOWEST], facts[q, HIGHEST]
    slope, widest = values[start], facts[q, UNITS + depth - 1]
    if slope == 0.0:
        for i in range(count):
            costs[i] = share
    else:
        left = a // widest * widest
        for i in range(count):
            at = codes[i] // widest * widest
            width = min(max(left, at) + (widest - 1), highest - 1) - max(min(left, at), lowest)
            costs[i] = share * min(width * slope, 1.0)
    for step in range(depth):
        rung = depth - 1 - step
        unit = facts[q, UNITS + rung]
        left = a // unit * unit
        cost = values[start + 1 + rung]
        if slope != 0.0:
            cost = min((min(left + (unit - 1), highest - 1) - max(left, lowest)) * slope, 1.0)
        for i in range(count):
            costs[i] = share * cost if left <= codes[i] < left + unit else costs[i]
    for i in range(count):
        costs[i] = costs[i] if codes[i] < highest else share  # an extra leaf shares nothing
