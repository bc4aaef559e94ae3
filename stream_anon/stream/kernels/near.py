"""Which rows are near enough to a newcomer to be worth growing a cluster of, compiled."""

from __future__ import annotations

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import KIND, SIZE, TABLE, inner
from stream_anon.stream.kernels.boxes import widen_column


@inner
def alike(facts: Ints, weight: Floats, least: Floats, order: Ints, limit: float) -> int:
    """In how many columns, the first of `order`, rows within the limit must be equal: in them nothing is cheap enough.

    Only columns in which equal values cost nothing count, and no more than fit into one number.
    """
    count, numbers = 0, 1.0
    for q in order:
        numbers *= facts[q, SIZE]
        if facts[q, KIND] != TABLE or weight[q] * least[q] <= limit or numbers > 2.0**62:
            break
        count += 1
    return count


@inner
def key_of(facts: Ints, order: Ints, same: int, qi: Ints, slot: int) -> int:
    """One number for what a row is in the first `same` columns of `order`."""
    key = 0
    for place in range(same):
        key = key * facts[order[place], SIZE] + qi[slot, order[place]]
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
    """Which of the first rows that wait cost at most `limit` together with one row; how many, in their order.

    First those with its key, then column by column, dropping rows as soon as they exceed the limit.
    """
    count = 0
    for i in range(length):
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
    """Add what one column costs, and keep the rows that stay within the limit."""
    kept = 0
    for i in range(length):
        cost = total[i] + costs[i]
        near[kept] = near[i]
        total[kept] = cost
        kept += cost <= limit
    return kept


@inner
def rekey(facts: Ints, order: Ints, same: int, qi: Ints, waiting: Ints, length: int, keys: Ints) -> None:
    """The keys of all rows that wait."""
    for i in range(length):
        keys[i] = key_of(facts, order, same, qi, waiting[i])
