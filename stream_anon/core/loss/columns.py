"""What is left in each column: how far its distribution moved, and how much its correlations with others changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints, ValueSet

BINS = 1_000
"""Bins of a column at the most: a column of fewer different values has one for each."""

LOOKUP = 1 << 20
"""Positions from the lowest to the highest up to which the bin of each is looked up."""


@dataclass(frozen=True)
class ColumnUtility:
    """How useful a column still is; 0 is best in both.

    `distribution` is the share of rows that would have to change their bin to get from the published distribution, each
    label spread evenly over what it covers, back to the original one. `correlation` is how much the correlations of
    positions with those of the other columns changed, on average; of a label the middle of what it covers counts.
    """

    distribution: float
    correlation: float


def bins_of(positions: Ints) -> list[list[int]]:
    """Return the first positions of the bins of each column: so many of about the same number of rows.

    >>> bins_of(np.array([[3], [7], [7], [9]]))
    [[3, 7, 9]]
    """
    found = []
    for column in positions.T:
        different = np.unique(column)
        if len(different) > BINS:
            different = np.unique(np.sort(column)[np.arange(BINS) * len(column) // BINS])
        found.append(different.tolist() or [0])
    return found or [[0]] * positions.shape[1]


class ColumnSums:
    """Sums by which columns before and after are compared; those of parts with the same bins are added."""

    def __init__(self, columns: Sequence[tuple[str, Hierarchy]], bins: Sequence[Sequence[int]]) -> None:
        self._columns = tuple(columns)
        self._bins = [np.array(own, dtype=np.int64) for own in bins]
        self._moved = [np.zeros(len(own)) for own in self._bins]
        shape = len(self._columns) + 1, len(self._columns) + 1
        self._before, self._after = np.zeros(shape), np.zeros(shape)

    def add(self, qi: Ints, starts: Ints, left: Ints, right: Ints) -> None:
        """Add classes: their rows, where each begins, and the first and last positions that their labels cover."""
        sizes = np.diff(starts)
        middle = np.empty(left.shape)
        for q, (_, hierarchy) in enumerate(self._columns):
            if isinstance(hierarchy, ValueSet):
                after, middle[:, q] = self._sets(q, qi[:, q], sizes, hierarchy.size)
            else:
                after = _spread(self._bins[q], sizes, left[:, q], right[:, q])
                middle[:, q] = (left[:, q] + right[:, q]) / 2
            self._moved[q] += after - np.bincount(_bin(self._bins[q], qi[:, q]), minlength=len(self._bins[q]))
        ones = np.ones((len(qi), 1))
        own = np.hstack([ones, qi])
        self._before += own.T @ own
        own = np.hstack([ones[: len(sizes)], middle])
        self._after += (own * sizes[:, None]).T @ own

    def _sets(self, q: int, codes: Ints, sizes: Ints, width: int) -> tuple[Floats, Floats]:
        """Return the same of sets: each member has as many rows as any other, and its middle is their mean."""
        pairs = np.unique(np.repeat(np.arange(len(sizes)), sizes) * width + codes)
        group, member = pairs // width, pairs % width
        count = np.bincount(group, minlength=len(sizes))
        after = np.bincount(_bin(self._bins[q], member), (sizes / count)[group], len(self._bins[q]))
        return np.asarray(after, np.float64), np.bincount(group, member, len(sizes)) / count

    def figures(self) -> dict[str, Any]:
        """Return all sums as plain data."""
        moved = [own.tolist() for own in self._moved]
        return {"moved": moved, "before": self._before.tolist(), "after": self._after.tolist()}

    def merge(self, figures: Mapping[str, Any]) -> None:
        """Add the sums of another part."""
        for own, more in zip(self._moved, figures["moved"], strict=True):
            own += np.array(more)
        self._before += np.array(figures["before"])
        self._after += np.array(figures["after"])

    def utility(self) -> dict[str, ColumnUtility]:
        """Return the utility of each column."""
        rows, width = max(float(self._before[0, 0]), 1.0), len(self._columns)
        changed = np.abs(_correlations(self._after) - _correlations(self._before))
        np.fill_diagonal(changed, 0.0)
        apart = changed.sum(axis=1) / max(width - 1, 1)
        return {
            name: ColumnUtility(float(np.abs(self._moved[q]).sum()) / 2 / rows, float(apart[q]))
            for q, (name, _) in enumerate(self._columns)
        }


def _bin(bins: Ints, positions: Ints) -> Ints:
    """Return the bin of each position; what is below the first is in it."""
    lowest, highest = int(positions.min(initial=0)), int(positions.max(initial=0))
    if highest - lowest >= LOOKUP or highest - lowest > 4 * len(positions):
        return np.maximum(np.searchsorted(bins, positions, side="right") - 1, 0)
    table = np.maximum(np.searchsorted(bins, np.arange(lowest, highest + 1), side="right") - 1, 0)
    return np.asarray(table[positions - lowest])


def _spread(bins: Ints, sizes: Ints, left: Ints, right: Ints) -> Floats:
    """Return how many rows are in each bin if those of each class are spread evenly from `left` to `right`.

    >>> _spread(np.array([0, 2, 8]), np.array([5, 2]), np.array([1, 0]), np.array([10, 1]))
    array([2.5, 3. , 1.5])
    """
    first, last = _bin(bins, left), _bin(bins, right)
    each = sizes / (right - left + 1.0)
    ends = np.append(bins[1:], 0)
    one = first == last
    found = np.asarray(np.bincount(first, np.where(one, sizes, each * (ends[first] - left)), len(bins)), np.float64)
    found += np.bincount(last, np.where(one, 0.0, each * (right + 1 - bins[last])), len(bins))
    change = np.zeros(len(bins) + 1)
    change += np.bincount(first + 1, np.where(one, 0.0, each), len(bins) + 1)
    change -= np.bincount(last, np.where(one, 0.0, each), len(bins) + 1)
    found[:-1] += np.cumsum(change)[:-2] * np.diff(bins)
    return found


def _correlations(sums: Floats) -> Floats:
    """Return the correlations of columns, 0 for one that is the same everywhere; `sums` has those of products."""
    rows = max(float(sums[0, 0]), 1.0)
    mean = sums[0, 1:] / rows
    spread = sums[1:, 1:] / rows - np.outer(mean, mean)
    scale = np.sqrt(np.maximum(np.diag(spread), 0.0))
    known = np.outer(scale, scale) > 1e-12 * (1.0 + np.outer(np.abs(mean), np.abs(mean)))
    return np.asarray(np.divide(spread, np.outer(scale, scale), out=np.zeros_like(spread), where=known))
