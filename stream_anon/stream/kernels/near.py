"""Which rows are near enough to a newcomer to be worth growing a cluster of, compiled."""

from __future__ import annotations

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import KIND, SIZE, START, TABLE, inner, price


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
        count = keep(facts, values, weight, order[place], qi, slot, count, limit, near, total)
    return count


@inner
def keep(
    facts: Ints,
    values: Floats,
    weight: Floats,
    q: int,
    qi: Ints,
    slot: int,
    length: int,
    limit: float,
    near: Ints,
    total: Floats,
) -> int:
    """One column of `near_rows`: add what it costs, and keep the rows that stay within the limit."""
    at, share, kept = qi[slot, q], weight[q], 0
    if facts[q, KIND] == TABLE:  # the table is symmetric: no need to know which is lower
        row = facts[q, START] + at * facts[q, SIZE]
        for i in range(length):
            cost = total[i] + share * values[row + qi[near[i], q]]
            near[kept] = near[i]
            total[kept] = cost
            kept += cost <= limit
    else:
        for i in range(length):
            other = qi[near[i], q]
            cost = total[i] + share * price(facts, values, q, min(at, other), max(at, other))
            near[kept] = near[i]
            total[kept] = cost
            kept += cost <= limit
    return kept


@inner
def rekey(facts: Ints, order: Ints, same: int, qi: Ints, waiting: Ints, length: int, keys: Ints) -> None:
    """The keys of all rows that wait."""
    for i in range(length):
        keys[i] = key_of(facts, order, same, qi, waiting[i])
