"""Clear a pool: divide all its rows into blocks at once, by their quasi-identifiers and people alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_anon.core.batch import cut
from stream_anon.core.hierarchy import Hierarchy, Ints
from stream_anon.core.hierarchy.tree import peaks_of
from stream_anon.core.kernels import KIND, PEAKS, SIZE, START, TABLE, Prices, neighbour_prices, nests, range_prices
from stream_anon.stream.joint.lattice import Coded, Lattice
from stream_anon.stream.kernels.exchange import improve
from stream_anon.stream.kernels.walk import walk

AGAIN = 64
"""Clearings after which the vectors of the lattice are ordered anew, by the rows of the next one."""

PASSES = 2
"""Rounds of exchange between the blocks: the first brings two thirds of what many bring, later ones look only at what
has changed."""

FEW_VALUES = 256
"""Different values of a column up to which all their ranges are priced beforehand: a look-up is faster."""

MOST_ROWS = 50_000
"""Rows that are divided together: of more, which only rows that cannot be told apart are, each part by itself."""

_NOBODY = np.empty(0, dtype=np.int64)


class Clearing:
    """The division of rows into blocks.

    1. Walk the lattice of generalizations from cheap to costly; whenever enough of the remaining people share all cells
       of one, they are a block.
    2. Rows that are left join the block where they add least.
    3. Rows move to, or change places with rows of, blocks where they cost less.
    """

    def __init__(self, prices: Prices, hierarchies: Sequence[Hierarchy]) -> None:
        self._prices = prices
        self._lattice = Lattice(hierarchies, prices.weight)
        self._count = 0

    def divide(self, qi: Ints, subject: Ints, rows: Ints, people: int) -> list[Ints]:
        """Return blocks of `people` different people or more that hold all rows; one block if there are fewer."""
        if not len(rows):
            return []
        if len(rows) > MOST_ROWS:
            parts = np.array_split(rows, len(rows) // MOST_ROWS + 1)
            return [block for part in parts for block in self.divide(qi, subject, part, people)]
        found, person = np.unique(subject[rows], return_inverse=True)
        if len(found) < 2 * people:
            return [rows]
        points = np.ascontiguousarray(qi[rows])
        if self._count % AGAIN == 0:
            self._lattice.order(points)
        self._count += 1
        who = _NOBODY if len(found) == len(rows) else person.astype(np.int64)
        block, lattice = np.full(len(rows), -1, dtype=np.int64), self._lattice
        columns = [Coded(*np.unique(column, return_inverse=True)) for column in points.T]
        keys, vectors, costs = lattice.lay_out(columns)
        prices, codes = _looked_up(self._prices, points, columns)
        blocks = walk(prices, codes, keys, vectors, costs, people, who, block)
        improve(prices, codes, block, blocks, people, who, PASSES)
        order = np.argsort(block, kind="stable")
        return cut(rows[order], (np.flatnonzero(np.diff(block[order])) + 1).tolist())


def _looked_up(prices: Prices, points: Ints, columns: list[Coded]) -> tuple[Prices, Ints]:
    """Return the rows with small codes in place of positions, and the prices of these codes.

    A column of few values gets a table of all ranges; one of units that nest, the peaks between neighbours.
    """
    facts, codes = prices.facts.copy(), points.copy()
    values, used = [prices.values], len(prices.values)
    for q, (found, code) in enumerate(columns):
        kind, size, table = TABLE, len(found), np.empty(0)
        if len(found) <= FEW_VALUES:
            table = range_prices(prices.facts, prices.values, q, found).ravel()
        elif nests(prices, q):
            kind, size = PEAKS, len(found) - 1
            table = peaks_of(neighbour_prices(prices.facts, prices.values, q, found)).ravel()
        else:
            continue
        facts[q, KIND], facts[q, START], facts[q, SIZE] = kind, used, size
        codes[:, q] = code
        values.append(table)
        used += table.size
    return prices._replace(facts=facts, values=np.concatenate(values)), codes
