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
def unions(
    facts: Ints, values: Floats, weight: Floats, qi: Ints, slots: Ints, low: Ints, high: Ints, result: Floats
) -> None:
    """The same for many rows, column by column: short loops without branches are several times faster."""
    for i in range(len(slots)):
        result[i] = 0.0
    for q in range(len(weight)):
        a, b, share = low[q], high[q], weight[q]
        if facts[q, KIND] == TABLE:
            start, size = facts[q, START], facts[q, SIZE]
            if a == b:  # the table is symmetric: no need to know which is lower
                for i in range(len(slots)):
                    result[i] += share * values[start + a * size + qi[slots[i], q]]
            else:
                for i in range(len(slots)):
                    at = qi[slots[i], q]
                    result[i] += share * values[start + min(a, at) * size + max(b, at)]
        elif facts[q, KIND] == LINEAR:
            slope, highest = values[facts[q, START]], facts[q, HIGHEST]
            for i in range(len(slots)):
                at = qi[slots[i], q]
                result[i] += share * line(slope, highest, min(a, at), max(b, at))
        else:
            for i in range(len(slots)):
                at = qi[slots[i], q]
                result[i] += share * price(facts, values, q, min(a, at), max(b, at))


@compiled
def union_prices_compiled(prices: Prices, qi: Ints, slots: Ints, low: Ints, high: Ints) -> Floats:
    """See `Kernels.union_prices`."""
    facts, values, weight, _ = prices
    result = np.empty(len(slots))
    unions(facts, values, weight, qi, slots, low, high, result)
    return result


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
