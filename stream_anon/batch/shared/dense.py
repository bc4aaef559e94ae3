"""Rows as small consecutive codes, with the prices of all ranges precomputed for the compiled searches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints, ValueSet
from stream_anon.core.kernels import (
    KIND,
    Prices,
    cell_prices,
    inner,
    neighbour_prices,
    nests,
    price,
    range_prices,
)
from stream_anon.core.kernels import PEAKS as PEAK_TABLE
from stream_anon.core.schema import Schema

TABLE_LIMIT = 512
"""Different values of a column up to which all stretches are priced beforehand: 2 MiB at most."""

ENOUGH = 100_000
"""Rows by which the columns are put into their order: of more, every so many-th."""

PEAKS = -1
"""The `size` of a column whose stretches cost what their dearest pair of neighbours does."""


class Dense(NamedTuple):
    """The dense rows: `code[row, q]` stands for position `point[first[q] + code]`; column q has `kinds[q]` codes.

    A column with few values has all its prices, weighted, in `table` from `start[q]` on, `size[q]` to a line. Of many
    values in nested cells (`PEAKS`), line h has the dearest of 2^h pairs of neighbours from each code on; `log` is the
    line for each distance. Another column has `size[q] == 0` and is priced from its position.
    """

    code: Ints
    point: Ints
    first: Ints
    kinds: Ints
    table: Floats
    start: Ints
    size: Ints
    log: Ints
    facts: Ints
    values: Floats
    weight: Floats

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.code.shape[1])

    def points(self, q: int) -> Ints:
        """Return the positions that occur in column q, ascending."""
        return self.point[self.first[q] : self.first[q] + self.kinds[q]]


def densify(rows: Batch, schema: Schema, prices: Prices | None = None) -> tuple[Dense, Ints]:
    """Return the rows with the most telling column first, as it decides comparisons soonest, and that order of columns.

    How telling a column is, is the price of a stretch between two rows that have nothing to do with one another.
    """
    prices = schema.prices if prices is None else prices
    n = len(rows)
    some = np.arange(min(n, ENOUGH)) * n // max(min(n, ENOUGH), 1)
    one, other = rows.qi[some], rows.qi[(some * 2654435761 + 1) % max(n, 1)]  # a fixed, scattered partner for each row
    low, high = np.minimum(one, other), np.maximum(one, other)
    telling = (cell_prices(prices.facts, prices.values, low, high) * prices.weight).sum(axis=0)
    order = np.argsort(-telling, kind="stable")
    facts, weight = prices.facts[order], prices.weight[order]
    code = np.empty((n, len(order)), dtype=np.int64)
    points: list[Ints] = []
    tables: list[Floats] = [np.zeros(1)]
    start, size, used = [], [], 1
    for place, q in enumerate(order.tolist()):
        found, code[:, place] = _coded(rows.qi[:, q])
        points.append(found)
        small = len(found) <= TABLE_LIMIT
        nested = not small and (nests(prices, q) or int(prices.facts[q, KIND]) == PEAK_TABLE)
        start.append(used)
        size.append(len(found) if small else PEAKS if nested else 0)
        if small or nested:
            made = range_prices if small else _peaks
            table = made(facts, prices.values, place, found) * weight[place]
            tables.append(table.ravel())
            used += table.size
    count = np.array([len(found) for found in points], dtype=np.int64)
    dense = Dense(
        code=code,
        point=np.concatenate(points),
        first=np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64),
        kinds=count,
        table=np.concatenate(tables),
        start=np.array(start, dtype=np.int64),
        size=np.array(size, dtype=np.int64),
        log=np.frexp(np.arange(max(int(count.max()), 1), dtype=np.float64))[1].astype(np.int64) - 1,
        facts=facts,
        values=prices.values,
        weight=weight,
    )
    return dense, order


def _coded(values: Ints) -> tuple[Ints, Ints]:
    """Return the different values, ascending, and the place of each value among them: looked up where they lie close.

    >>> _coded(np.array([7, 9, 7]))
    (array([7, 9]), array([0, 1, 0]))
    """
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low > 4 * len(values):
        return np.unique(values, return_inverse=True)
    there = np.zeros(high - low + 1, dtype=np.bool_)
    there[values - low] = True
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[values - low]


def _peaks(facts: Ints, values: Floats, q: int, points: Ints) -> Floats:
    """Return the dearest of 1, 2, 4, ... pairs of neighbours from each point on, a line for each."""
    lines = [np.append(neighbour_prices(facts, values, q, points), 0.0)]
    while (reach := 1 << len(lines)) < len(points):
        before = lines[-1]
        lines.append(np.maximum(before, np.append(before[reach // 2 :], np.zeros(reach // 2))))
    return np.stack(lines)


def sets_of(schema: Schema) -> list[str]:
    """Return the columns that become sets, which have no ranges."""
    return [column.name for column in schema.quasi if isinstance(column.hierarchy, ValueSet)]


@inner
def stretch(dense: Dense, q: int, low: int, high: int) -> float:
    """Return the weighted price of the range between two codes of column q."""
    size = dense.size[q]
    if size > 0:
        return float(dense.table[dense.start[q] + low * size + high])
    if size == PEAKS:
        if low == high:
            return 0.0
        line = dense.log[high - low]
        base = dense.start[q] + line * dense.kinds[q]
        return float(max(dense.table[base + low], dense.table[base + high - (1 << line)]))
    at = dense.first[q]
    return float(dense.weight[q] * price(dense.facts, dense.values, q, dense.point[at + low], dense.point[at + high]))


@inner
def box_price(dense: Dense, low: Ints, high: Ints) -> float:
    """Return the weighted price of a box."""
    total = 0.0
    for q in range(len(low)):
        total += stretch(dense, q, low[q], high[q])
    return total
