"""The lattice of generalizations that a clearing walks: levels of every column, and vectors of them, cheapest first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints, Kind, Tree
from stream_anon.stream.kernels.walk import Keys

STEPS = 14
"""Widths of a number that are tried, from one position to its whole range, each larger by the same factor."""

MOST = 5_000
"""Vectors in a lattice: of more, those on random cheap paths from the finest to the coarsest are taken."""

GENTLE = 0.6
"""A number counts so much of its nominal width, for the box of the rows found is narrower than their cell."""


class Coded(NamedTuple):
    """A column of rows: its different positions in order, and for each row the number of its own."""

    points: Ints
    code: Ints


class Level:
    """One level of one column: the cell of every position, by division or by a table."""

    def __init__(self, unit: int, table: Ints | None, top: int, factor: int) -> None:
        self._unit, self._table, self._top, self._factor = unit, table, top, np.uint32(factor)

    def cells(self, at: Ints) -> Ints:
        """Return the cell of each position; what is missing or unknown is a cell of its own."""
        if self._table is not None:
            return np.asarray(self._table[at])
        cells = np.asarray(at // self._unit)
        return np.where(at >= self._top, -1 - at, cells) if self._top else cells

    def keys(self, at: Ints) -> Keys:
        """Return the cells scattered over all numbers, so that sums over columns tell combinations apart."""
        return np.asarray(self.cells(at).astype(np.uint32) * self._factor)


class Lattice:
    """All levels of all columns, one after the other, and the vectors that pick one level of each.

    Vectors are ordered by what they cost on average on a sample of rows.
    """

    def __init__(self, hierarchies: Sequence[Hierarchy], weights: Floats) -> None:
        rng = np.random.default_rng(1)
        self._hierarchies, self._weights = list(hierarchies), weights
        self._levels = [_levels(hierarchy, rng) for hierarchy in hierarchies]
        depths = [len(levels) + 1 for levels in self._levels]  # the last level is everything
        self.first = np.concatenate([[0], np.cumsum(depths)]).astype(np.int64)
        self.vectors: Ints = np.empty((0, len(depths)), dtype=np.int64)
        self._rng = rng
        self._names = rng.integers(0, 1 << 63, int(self.first[-1]), dtype=np.uint64)
        self.costs: Floats = np.zeros(0)

    def lay_out(self, columns: Sequence[Coded]) -> tuple[Keys, Ints, Floats]:
        """Return the key of every row at every level, as (levels, rows), and the vectors worth walking, with costs.

        Keys have 32 bits, for the walk's speed. Classes that share one by chance are taken for one class: it costs some
        loss, once in thousands of vectors, and nothing else. Of vectors that part these rows alike only the cheapest is
        walked: where all have one job, say, its levels make no difference.
        """
        keys = np.zeros((int(self.first[-1]), len(columns[0].code)), dtype=np.uint32)
        alike = np.arange(int(self.first[-1]))
        for q, (levels, (points, code)) in enumerate(zip(self._levels, columns, strict=True)):
            first = int(self.first[q])
            borders: dict[bytes, int] = {}
            for place, level in enumerate(levels):
                cells = level.keys(points)
                keys[first + place] = cells[code]
                alike[first + place] = borders.setdefault((cells[1:] != cells[:-1]).tobytes(), first + place)
            nothing = bytes(max(len(points) - 1, 0))
            alike[first + len(levels)] = borders.setdefault(nothing, first + len(levels))
        if (alike == np.arange(len(alike))).all():
            return keys, self.vectors, self.costs
        names = self._names[alike][self.vectors].sum(axis=1, dtype=np.uint64)
        kept = np.sort(np.unique(names, return_index=True)[1])
        return keys, np.ascontiguousarray(self.vectors[kept]), self.costs[kept]

    def order(self, qi: Ints) -> None:
        """Order the vectors by what they cost on these rows; build them the first time."""
        losses = [self._losses(q, qi[:, q]) for q in range(len(self._levels))]
        if not len(self.vectors):
            self.vectors = _vectors(losses, MOST, self._rng) + self.first[:-1]
        total = np.zeros(len(self.vectors))
        for q, loss in enumerate(losses):
            total += loss[self.vectors[:, q] - self.first[q]]
        place = np.argsort(total, kind="stable")
        self.vectors, self.costs = np.ascontiguousarray(self.vectors[place]), total[place]

    def _losses(self, q: int, at: Ints) -> Floats:
        """Return what a row loses on average in column q at each of its levels, everything last."""
        hierarchy, weight = self._hierarchies[q], float(self._weights[q])
        share = weight * (GENTLE if is_number(hierarchy) else 1.0)
        points, which = np.unique(at, return_inverse=True)
        losses = []
        for level in [*(level.cells(points) for level in self._levels[q]), np.zeros(len(points), dtype=np.int64)]:
            _, cell = np.unique(level, return_inverse=True)
            low, high = np.full(cell.max() + 1, points[-1]), np.full(cell.max() + 1, points[0])
            np.minimum.at(low, cell, points)
            np.maximum.at(high, cell, points)
            losses.append(share * float(hierarchy.loss(low[cell], high[cell])[which].mean()))
        return np.array(losses)


def is_number(hierarchy: Hierarchy) -> bool:
    """Tell whether the cost of a range grows with its width."""
    table = hierarchy.cost_table()
    return table.kind is Kind.LINEAR or (table.kind is Kind.LADDER and table.slope > 0)


def _levels(hierarchy: Hierarchy, rng: np.random.Generator) -> list[Level]:
    def factor() -> int:
        return int(rng.integers(1 << 31, 1 << 32)) | 1

    if isinstance(hierarchy, Tree):
        return [Level(1, cells, 0, factor()) for cells in _climb(hierarchy)]
    table = hierarchy.cost_table()
    if table.kind in (Kind.TABLE, Kind.PEAKS):
        return [Level(1, cells, 0, factor()) for cells in _fuse(hierarchy, table.size)]
    units = list(table.units)
    if is_number(hierarchy):
        width = max(int(1 / table.slope) // units[-1], 1)
        grown = np.unique(np.round(np.geomspace(1, width, STEPS)).astype(np.int64))
        units += [int(step) * units[-1] for step in grown if step > 1]
    return [Level(unit, None, table.highest, factor()) for unit in units]


def _climb(tree: Tree) -> list[Ints]:
    """Return the ancestors of all leaves, one step higher each time, up to where more than one is left."""
    node, rows = np.arange(tree.size), []
    while len(np.unique(node)) > 1:
        rows.append(node)
        above = tree.parent[node]
        node = np.where(above >= 0, above, node)
    return rows


def _fuse(hierarchy: Hierarchy, size: int) -> list[Ints]:
    """Return cells of neighbours that cost little together, for a hierarchy of which only prices are known."""
    at = np.arange(max(size - 1, 0))
    beside = np.asarray(hierarchy.loss(at, at + 1))
    limits: Floats = np.unique(np.quantile(beside, np.linspace(0.0, 1.0, STEPS))) if len(beside) else np.empty(0)
    return [np.arange(size), *(np.concatenate([[0], np.cumsum(beside > limit)]) for limit in limits[:-1])]


def _vectors(losses: Sequence[Floats], most: int, rng: np.random.Generator) -> Ints:
    """Return all level vectors; of more than `most`, those on random cheap paths to the top."""
    if np.prod([float(len(loss)) for loss in losses]) <= most:
        return np.array(list(product(*[range(len(loss)) for loss in losses])), dtype=np.int64)
    tops = np.array([len(loss) - 1 for loss in losses])
    steps = np.full((len(losses), int(tops.max()) + 1), np.inf)
    for q, loss in enumerate(losses):
        steps[q, : len(loss) - 1] = np.maximum(np.diff(loss), 1e-9)
    chains = 2 * most // int(tops.sum()) + 1
    at, column = np.zeros((chains, len(losses)), dtype=np.int64), np.arange(len(losses))
    price, found = rng.exponential(size=at.shape), [at.copy()]
    for _ in range(int(tops.sum())):
        cost = steps[column, at] * price * rng.exponential(size=at.shape)
        at[np.arange(chains), np.argmin(cost, axis=1)] += 1
        found.append(at.copy())
    vectors = np.unique(np.concatenate(found), axis=0)
    kept = rng.permutation(len(vectors))[:most]
    return np.asarray(np.unique(np.concatenate([vectors[kept], tops[None]]), axis=0))
