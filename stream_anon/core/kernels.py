"""Prices of boxes inside compiled loops: the same numbers as `Hierarchy.loss`, to the last bit.

With numba installed the functions are compiled (and cached on disk); without it they are the same functions in Python,
so that results never depend on what is installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from stream_anon.core.hierarchy.base import CostTable, Floats, Hierarchy, Ints, Kind, Trouble

F = TypeVar("F", bound=Callable[..., Any])

WANTED = os.environ.get("STREAM_ANON_COMPILE") != "never"
"""Whether loops shall be compiled: a short command says no, for loading the compiler takes longer than they do."""

try:
    if not WANTED:
        raise ImportError
    import numba
    from numba.core.registry import CPUDispatcher

    COMPILED = True
except ImportError:  # the extra "speed" is not installed
    COMPILED = False

if COMPILED:

    class _Inner(CPUDispatcher):
        """A compiled function without a door for Python."""

        def __call__(self, *args: Any) -> Any:
            """Run the function as it is written."""
            return self.py_func(*args)


def compiled(function: F) -> F:
    """Compile a kernel if numba is installed; otherwise return it unchanged."""
    return _jit(function, no_cfunc_wrapper=True)


def kernel(function: F) -> F:
    """Compile a kernel that makes no array and keeps none: the caller brings all room it needs.

    Without reference counts it compiles in less time, and runs faster.
    """
    return _jit(function, no_cfunc_wrapper=True, _nrt=False)


def inner(function: F) -> F:
    """Compile a function that only other kernels call, in their loops: it makes no array and keeps none.

    Without reference counts it is some ten times faster than with them. It compiles in less time because it has no door
    for Python: called from there it runs as it is written. Arguments cost compile time, arrays most of all, and so does
    a plain number: `f(0)` is compiled apart from `f(count)`.
    """
    made: Any = _jit(function, no_cfunc_wrapper=True, no_cpython_wrapper=True, _nrt=False)
    if COMPILED and isinstance(made, CPUDispatcher):  # not where numba is told to compile nothing
        made.__class__ = _Inner
    return cast(F, made)


def _jit(function: F, **options: Any) -> F:
    return cast(F, numba.njit(cache=True, nogil=True, **options)(function)) if COMPILED else function


TABLE, PEAKS, LADDER, LINEAR = int(Kind.TABLE), int(Kind.PEAKS), int(Kind.LADDER), int(Kind.LINEAR)
SHORT = 160
"""Positions up to which a ladder is looked up: its table fits into the second cache."""
KIND, START, SIZE, DEPTH, LOWEST, HIGHEST, UNITS = range(7)
"""The columns of `Prices.facts`; the units of a ladder follow one another from `UNITS` on."""


class Prices(NamedTuple):
    """The price structures of all quasi-identifiers, packed for kernels. Row q of `facts` belongs to column q.

    `values` holds, from `START` on, a table whose rows and columns are positions (they may begin elsewhere than at 0:
    then `START` lies before it), or a ladder's slope followed by the price of each unit. Kernels
    take the arrays apart: inside a compiled loop an array is free, a field of a tuple is not. `least` is what two
    different values of a column cost at the least.
    """

    facts: Ints
    values: Floats
    weight: Floats
    least: Floats


def pack(hierarchies: Sequence[Hierarchy], weights: Sequence[float]) -> Prices:
    """Pack the cost tables of all columns side by side."""
    tables: list[CostTable] = [_looked_up(hierarchy, hierarchy.cost_table()) for hierarchy in hierarchies]
    facts = np.ones((len(tables), UNITS + max((len(table.units) for table in tables), default=1)), dtype=np.int64)
    values: list[Floats] = []
    start = 0
    for q, table in enumerate(tables):
        own = table.values if table.kind in (Kind.TABLE, Kind.PEAKS) else np.array([table.slope, *table.levels])
        first = start - table.lowest * (table.size + 1) if table.kind is Kind.TABLE else start
        facts[q, :UNITS] = table.kind, first, table.size, len(table.units), table.lowest, table.highest
        facts[q, UNITS : UNITS + len(table.units)] = table.units
        values.append(own)
        start += len(own)
    least = np.array([table.least for table in tables], dtype=np.float64)
    return Prices(facts, np.concatenate(values), np.array(weights, dtype=np.float64), least)


def _looked_up(hierarchy: Hierarchy, table: CostTable) -> CostTable:
    """Turn a short ladder into a square table from its lowest position to its last extra leaf: lookup is faster."""
    size = table.highest + len(Trouble) - 1 - table.lowest
    if table.kind is not Kind.LADDER or size > SHORT:
        return table
    at = np.arange(size) + table.lowest
    values = hierarchy.loss(np.minimum.outer(at, at).ravel(), np.maximum.outer(at, at).ravel())
    alone = values[:: size + 1].any()  # equal values cost something: then being different tells nothing
    return CostTable(Kind.TABLE, size, values, lowest=table.lowest, least=0.0 if alone else table.least)


@kernel
def line(slope: float, highest: int, low: int, high: int) -> float:
    """Return the cost of a range of plain numbers; positions from `highest` on are extra leaves, each on its own."""
    if high < highest:
        return min((high - low) * slope, 1.0)
    return 0.0 if low == high else 1.0


@kernel
def price(facts: Ints, values: Floats, q: int, low: int, high: int) -> float:
    """Return the cost of the range `[low, high]` of column q."""
    kind = facts[q, KIND]
    start = facts[q, START]
    if kind == TABLE:
        return values[start + low * facts[q, SIZE] + high]
    if kind == PEAKS:
        span = high - low
        if span == 0:
            return 0.0
        row = 0
        while span >> (row + 1):
            row += 1
        base = start + row * facts[q, SIZE]
        return max(values[base + low], values[base + high - (1 << row)])
    if kind == LINEAR:
        return line(values[start], facts[q, HIGHEST], low, high)
    if high >= facts[q, HIGHEST]:
        return 0.0 if low == high else 1.0
    depth = facts[q, DEPTH]
    rung = 0
    while rung < depth and low // facts[q, UNITS + rung] != high // facts[q, UNITS + rung]:
        rung += 1
    slope = values[start]
    if slope == 0.0:
        return values[start + 1 + rung] if rung < depth else 1.0
    unit = facts[q, UNITS + min(rung, depth - 1)]
    left = max(low // unit * unit, facts[q, LOWEST])
    right = min(high // unit * unit + (unit - 1), facts[q, HIGHEST] - 1)
    return min((right - left) * slope, 1.0)


def cell_prices(facts: Ints, values: Floats, low: Ints, high: Ints) -> Floats:
    """Return the price of every column of every box, (boxes, columns)."""
    result = np.empty(low.shape)
    _cell_prices(facts, values, np.ascontiguousarray(low), np.ascontiguousarray(high), result)
    return result


@kernel
def _cell_prices(facts: Ints, values: Floats, low: Ints, high: Ints, result: Floats) -> None:
    for c in range(len(low)):
        for q in range(low.shape[1]):
            result[c, q] = price(facts, values, q, low[c, q], high[c, q])


def range_prices(facts: Ints, values: Floats, q: int, points: Ints) -> Floats:
    """Return the price of every range between two of the points of column q, unweighted; symmetric."""
    table = np.zeros((len(points), len(points)))
    _range_prices(facts, values, q, points, table)
    return table


@kernel
def _range_prices(facts: Ints, values: Floats, q: int, points: Ints, table: Floats) -> None:
    for a in range(len(points)):
        for b in range(a, len(points)):
            table[a, b] = table[b, a] = price(facts, values, q, points[a], points[b])


def neighbour_prices(facts: Ints, values: Floats, q: int, points: Ints) -> Floats:
    """Return the price of each of the points of column q together with the next one, unweighted."""
    costs = np.empty(len(points) - 1)
    _neighbour_prices(facts, values, q, points, costs)
    return costs


@kernel
def _neighbour_prices(facts: Ints, values: Floats, q: int, points: Ints, costs: Floats) -> None:
    for a in range(len(costs)):
        costs[a] = price(facts, values, q, points[a], points[a + 1])


def nests(prices: Prices, q: int) -> bool:
    """Tell whether a range of column q costs what its dearest pair of neighbours does, and one value nothing."""
    ladder = int(prices.facts[q, KIND]) == LADDER
    slope, alone = prices.values[prices.facts[q, START] : prices.facts[q, START] + 2] if ladder else (1.0, 1.0)
    return bool(ladder and slope == 0.0 and alone == 0.0)
