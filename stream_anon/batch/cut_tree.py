"""A tree of cuts that divides a table into parts of near rows, grown on a sample by quasi-identifiers alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.kernels import KIND, LINEAR, cell_prices
from stream_anon.core.schema import Schema

LEAST = 50_000
"""Rows of a part at the least: smaller ones would lose more, and their groups would be cut off at more borders."""

MOST = 500_000
"""Rows of a part that `auto` aims at: they and their groups fit into some hundred megabytes."""

SAMPLE = 100_000
"""Rows by which the cuts are chosen."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One cut: rows of part `part` whose position in column `column` is `border` or more become part `new`."""

    part: int
    column: int
    border: int
    new: int


@dataclass(frozen=True, slots=True)
class CutTree:
    """Cuts in the order in which they are made, from one part on, and the parts in the order of their places."""

    cuts: tuple[Cut, ...]
    order: tuple[int, ...]

    def parts_of(self, qi: Ints) -> Ints:
        """Return the part of each row, given its positions: near parts have near numbers.

        >>> CutTree((Cut(0, 0, 10, 1),), (0, 1)).parts_of(np.array([[3], [10], [12]])).tolist()
        [0, 1, 1]
        """
        part = np.zeros(len(qi), dtype=np.int64)
        for cut in self.cuts:
            part[(part == cut.part) & (qi[:, cut.column] >= cut.border)] = cut.new
        place = np.empty(len(self.order), dtype=np.int64)
        place[list(self.order)] = np.arange(len(self.order))
        return place[part]


def scatter(rows: Batch, tree: CutTree) -> Iterator[tuple[int, Batch]]:
    """Yield the parts that some rows fall into, and the rows of each in the order they came."""
    part, parts = tree.parts_of(rows.qi), len(tree.order)
    small = part.astype(np.uint16) if parts <= 1 << 16 else part  # sorted without comparing
    rows = rows.take(np.argsort(small, kind="stable"))
    ends = np.cumsum(np.bincount(part, minlength=parts)).tolist()
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        if end > start:
            yield number, rows.take(slice(start, end))


def wanted(rows: int, parts: int | None, least: int = LEAST, most: int = MOST) -> int:
    """Return how many parts to make of so many rows: as many as asked for, or as keep each below `most`.

    >>> wanted(10_000_000, None), wanted(120_000, 8), wanted(3, None)
    (20, 2, 1)
    """
    count = -(-rows // most) if parts is None else parts
    return max(1, min(count, rows // least))


def grow(sample: Ints, schema: Schema, parts: int, least: float) -> CutTree:
    """Grow a tree with so many leaves on the positions of a sample; no leaf has less than `least` of the sample.

    The largest leaf is cut next, as Mondrian would: in the column that costs most over its rows, at the median of a
    number, between children of the common ancestor otherwise, for no narrow group lies across these. Where no column
    can be cut, a leaf stays as it is. Sensitive values are not looked at: where a row falls must not tell them.
    """
    leaves, order, cuts = {0: np.arange(len(sample))}, [0], []
    stuck: set[int] = set()
    while len(leaves) < parts and len(stuck) < len(leaves):
        part = max(leaves.keys() - stuck, key=lambda leaf: (len(leaves[leaf]), -leaf))
        found = _cut(sample[leaves[part]], schema, least)
        if found is None:
            stuck.add(part)
            continue
        column, border = found
        right = sample[leaves[part], column] >= border
        new = len(leaves)
        leaves[new], leaves[part] = leaves[part][right], leaves[part][~right]
        order.insert(order.index(part) + 1, new)
        cuts.append(Cut(part, column, border, new))
    return CutTree(tuple(cuts), tuple(order))


def _cut(rows: Ints, schema: Schema, least: float) -> tuple[int, int] | None:
    """Return the column and the position at which to cut rows; None if no cut leaves enough on both sides."""
    prices = schema.prices
    low, high = rows.min(axis=0)[None], rows.max(axis=0)[None]
    costs = cell_prices(prices.facts, prices.values, low, high)[0]
    for q in np.argsort(-costs * prices.weight, kind="stable").tolist():
        points, counts = np.unique(rows[:, q], return_counts=True)
        before = np.cumsum(counts)[:-1]
        allowed = np.minimum(before, len(rows) - before) >= max(least, 1)
        if int(prices.facts[q, KIND]) != LINEAR:
            dearest = _across(schema, q, points)
            allowed &= dearest >= costs[q] if (allowed & (dearest >= costs[q])).any() else True
        if allowed.any():
            uneven = np.where(allowed, np.abs(2 * before - len(rows)), 2 * len(rows))
            return q, int(points[1:][np.argmin(uneven)])
    return None


def _across(schema: Schema, q: int, points: Ints) -> Ints:
    """Return what each of the points of a column costs together with the one before it."""
    prices = schema.prices
    facts = prices.facts[q : q + 1]
    return np.asarray(cell_prices(facts, prices.values, points[:-1, None], points[1:, None])[:, 0])


class Sampler:
    """A sample of rows as they pass, the same for the same rows in the same order."""

    def __init__(self, size: int = SAMPLE, seed: int = 0) -> None:
        self._size = size
        self._random = np.random.default_rng(seed)
        self._kept: list[Ints] = []
        self._ranks: list[Ints] = []
        self._limit = 2**62
        self.seen = 0

    def add(self, qi: Ints) -> None:
        """Show more rows. Each draws a number, and those with the smallest stay."""
        self.seen += len(qi)
        ranks = self._random.integers(0, 2**62, len(qi))
        low = ranks < self._limit
        self._kept.append(qi[low])
        self._ranks.append(ranks[low])
        if sum(map(len, self._ranks)) > 4 * self._size:
            self._shrink()

    def _shrink(self) -> None:
        ranks, kept = np.concatenate(self._ranks), np.concatenate(self._kept)
        chosen = np.sort(np.argsort(ranks, kind="stable")[: self._size])
        self._ranks, self._kept = [ranks[chosen]], [kept[chosen]]
        if len(chosen) == self._size:
            self._limit = int(ranks[chosen].max()) + 1

    def sample(self, width: int) -> Ints:
        """Return the positions of the rows that stayed."""
        if not self._kept:
            return np.empty((0, width), dtype=np.int64)
        self._shrink()
        return self._kept[0]


def spread(counts: Sequence[int]) -> str:
    """Say how large parts are.

    >>> spread([5, 70, 60])
    '3 parts of 5 to 70 rows'
    """
    return f"{len(counts)} parts of {min(counts):,} to {max(counts):,} rows"
