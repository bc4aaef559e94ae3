"""Prices of boxes widened by rows, compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import HIGHEST, KIND, LINEAR, SIZE, START, TABLE, Prices, compiled, inner, line, price


class Columns(NamedTuple):
    """The columns of a buffer that kernels read."""

    qi: Ints
    subject: Ints
    sensitive: Ints
    serial: Ints
    arrived: Floats


class Need(NamedTuple):
    """What a kernel can check by itself: k different people, and per sensitive column so many different values."""

    k: int
    values: Ints


@inner
def union(facts: Ints, values: Floats, weight: Floats, qi: Ints, slot: int, low: Ints, high: Ints) -> float:
    """The price of a box widened to hold a row."""
    total = 0.0
    for q in range(len(weight)):
        at = qi[slot, q]
        total += weight[q] * price(facts, values, q, min(low[q], at), max(high[q], at))
    return total


@inner
def gather(qi: Ints, slots: Ints, count: int, codes: Ints) -> None:
    """Lay the columns of some rows side by side: what is read many times is best read in a row."""
    for q in range(qi.shape[1]):
        for i in range(count):
            codes[q, i] = qi[slots[i], q]


@inner
def widen_column(
    facts: Ints, values: Floats, weight: Floats, q: int, codes: Ints, count: int, low: Ints, high: Ints, costs: Floats
) -> None:
    """What column q of a box costs once it holds each of the rows: short loops without branches."""
    a, b, share = low[q], high[q], weight[q]
    if facts[q, KIND] == TABLE:
        start, size = facts[q, START], facts[q, SIZE]
        if a == b:  # the table is symmetric: no need to know which is lower
            for i in range(count):
                costs[q, i] = share * values[start + a * size + codes[q, i]]
        else:
            for i in range(count):
                at = codes[q, i]
                costs[q, i] = share * values[start + min(a, at) * size + max(b, at)]
    elif facts[q, KIND] == LINEAR:
        slope, highest = values[facts[q, START]], facts[q, HIGHEST]
        for i in range(count):
            at = codes[q, i]
            costs[q, i] = share * line(slope, highest, min(a, at), max(b, at))
    else:
        for i in range(count):
            at = codes[q, i]
            costs[q, i] = share * price(facts, values, q, min(a, at), max(b, at))


@inner
def add_columns(costs: Floats, count: int, total: Floats) -> None:
    """What all columns cost together, added in their order."""
    for i in range(count):
        total[i] = 0.0
    for q in range(len(costs)):
        for i in range(count):
            total[i] += costs[q, i]


@inner
def unions(
    facts: Ints,
    values: Floats,
    weight: Floats,
    codes: Ints,
    count: int,
    low: Ints,
    high: Ints,
    costs: Floats,
    total: Floats,
) -> None:
    """The price of a box widened to hold each of many rows."""
    for q in range(len(weight)):
        widen_column(facts, values, weight, q, codes, count, low, high, costs)
    add_columns(costs, count, total)


@compiled
def union_prices_compiled(prices: Prices, qi: Ints, slots: Ints, low: Ints, high: Ints) -> Floats:
    """See `Kernels.union_prices`."""
    facts, values, weight, _ = prices
    codes, costs = np.empty((qi.shape[1], len(slots)), dtype=np.int64), np.empty((qi.shape[1], len(slots)))
    total = np.empty(len(slots))
    gather(qi, slots, len(slots), codes)
    unions(facts, values, weight, codes, len(slots), low, high, costs, total)
    return total


@compiled
def widened_prices_compiled(prices: Prices, qi: Ints, slot: int, low: Ints, high: Ints) -> Floats:
    """See `Kernels.widened_prices`."""
    facts, values, weight, _ = prices
    result = np.empty(len(low))
    for c in range(len(low)):
        result[c] = union(facts, values, weight, qi, slot, low[c], high[c])
    return result


@compiled
def box_price_compiled(prices: Prices, low: Ints, high: Ints) -> float:
    """See `Kernels.box_price`."""
    facts, values, weight, _ = prices
    total = 0.0
    for q in range(len(weight)):
        total += weight[q] * price(facts, values, q, low[q], high[q])
    return total
