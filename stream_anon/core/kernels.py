"""Prices of boxes inside compiled loops: the same numbers as `Hierarchy.loss`, to the last bit.

With numba installed the functions are compiled (and cached on disk); without it they are the same functions in Python,
so that results never depend on what is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from stream_anon.core.hierarchy.base import CostTable, Floats, Hierarchy, Ints, Kind

F = TypeVar("F", bound=Callable[..., Any])

try:
    import numba

    COMPILED = True
except ImportError:  # the extra "speed" is not installed
    COMPILED = False


def compiled(function: F) -> F:
    """Compile a kernel where numba is there; leave it alone where it is not."""
    if not COMPILED:
        return function
    return cast(F, numba.njit(cache=True, nogil=True)(function))


TABLE, PEAKS, LADDER = int(Kind.TABLE), int(Kind.PEAKS), int(Kind.LADDER)


class Prices(NamedTuple):
    """The price structures of all quasi-identifiers, packed for kernels; row q of each array belongs to column q."""

    kind: Ints
    start: Ints  # where column q begins in `values`
    size: Ints  # row length of its table
    values: Floats
    depth: Ints  # number of units
    units: Ints
    levels: Floats
    slope: Floats
    lowest: Ints
    highest: Ints
    weight: Floats  # of each column, summing to 1


def pack(hierarchies: Sequence[Hierarchy], weights: Sequence[float]) -> Prices:
    """Lay the cost tables of all columns side by side."""
    tables: list[CostTable] = [hierarchy.cost_table() for hierarchy in hierarchies]
    rungs = max((len(table.units) for table in tables), default=1)
    start = np.cumsum([0, *(len(table.values) for table in tables)])[:-1]
    pad = [(1,) * (rungs - len(table.units)) for table in tables]
    weight = np.array(weights, dtype=np.float64)
    return Prices(
        kind=np.array([table.kind for table in tables], dtype=np.int64),
        start=start.astype(np.int64),
        size=np.array([table.size for table in tables], dtype=np.int64),
        values=np.concatenate([table.values for table in tables]) if tables else np.zeros(1),
        depth=np.array([len(table.units) for table in tables], dtype=np.int64),
        units=np.array([table.units + p for table, p in zip(tables, pad, strict=True)], dtype=np.int64),
        levels=np.array([table.levels + p for table, p in zip(tables, pad, strict=True)], dtype=np.float64),
        slope=np.array([table.slope for table in tables]),
        lowest=np.array([table.lowest for table in tables], dtype=np.int64),
        highest=np.array([table.highest for table in tables], dtype=np.int64),
        weight=weight / weight.sum(),
    )


@compiled
def price(prices: Prices, q: int, low: int, high: int) -> float:
    """What the stretch `[low, high]` of column q costs."""
    kind = prices.kind[q]
    if kind == TABLE:
        return prices.values[prices.start[q] + low * prices.size[q] + high]
    if kind == PEAKS:
        span = high - low
        if span == 0:
            return 0.0
        row = 0
        while span >> (row + 1):
            row += 1
        base = prices.start[q] + row * prices.size[q]
        return max(prices.values[base + low], prices.values[base + high - (1 << row)])
    if high >= prices.highest[q]:
        return 0.0 if low == high else 1.0
    depth = prices.depth[q]
    rung = 0
    while rung < depth and low // prices.units[q, rung] != high // prices.units[q, rung]:
        rung += 1
    if prices.slope[q] == 0.0:
        return prices.levels[q, rung] if rung < depth else 1.0
    unit = prices.units[q, min(rung, depth - 1)]
    left = max(low // unit * unit, prices.lowest[q])
    right = min(high // unit * unit + (unit - 1), prices.highest[q] - 1)
    return min((right - left) * prices.slope[q], 1.0)


@compiled
def box_price(prices: Prices, low: Ints, high: Ints) -> float:
    """The weighted price of a box, summed over the columns in their order."""
    total = 0.0
    for q in range(len(low)):
        total += prices.weight[q] * price(prices, q, low[q], high[q])
    return total


@compiled
def cell_prices(prices: Prices, low: Ints, high: Ints) -> Floats:
    """The price of every column of every box, (boxes, columns)."""
    result = np.empty(low.shape)
    for c in range(low.shape[0]):
        for q in range(low.shape[1]):
            result[c, q] = price(prices, q, low[c, q], high[c, q])
    return result
