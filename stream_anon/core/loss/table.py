"""Quality measures of an anonymized table from the literature, each over a partition of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints, Tree


@dataclass(frozen=True, slots=True)
class Partition:
    """The rows `qi` (n, q), divided into `classes` (index arrays); rows in none of them are suppressed."""

    qi: Ints
    classes: Sequence[Ints]
    hierarchies: Sequence[Hierarchy]

    def boxes(self) -> tuple[Ints, Ints]:
        """Return the lower and upper corners of all classes, (c, q) each."""
        low = [self.qi[index].min(axis=0) for index in self.classes]
        high = [self.qi[index].max(axis=0) for index in self.classes]
        shape = (len(self.classes), len(self.hierarchies))
        return np.array(low, dtype=np.int64).reshape(shape), np.array(high, dtype=np.int64).reshape(shape)

    def sizes(self) -> Ints:
        """Return the number of rows per class."""
        return np.array([len(index) for index in self.classes], dtype=np.int64)

    @property
    def suppressed(self) -> int:
        """The number of rows in no class."""
        return len(self.qi) - int(self.sizes().sum())


def cell_losses(table: Partition) -> Floats:
    """Return what each class loses in each column, 0 to 1, as an array (c, q)."""
    low, high = table.boxes()
    losses = [h.loss(low[:, q], high[:, q]) for q, h in enumerate(table.hierarchies)]
    return np.stack(losses, axis=1) if losses else np.zeros((len(low), 0))


def ncp(table: Partition, weights: Sequence[float] | None = None) -> float:
    """Return the normalized certainty penalty: the weighted sum of all cell losses; a suppressed row loses all of them.

    Divide by rows and columns for the loss per cell.
    """
    weight = np.ones(len(table.hierarchies)) if weights is None else np.asarray(weights, dtype=np.float64)
    kept = float((cell_losses(table) * weight).sum(axis=1) @ table.sizes())
    return kept + table.suppressed * float(weight.sum())


def ncp_per_cell(table: Partition) -> float:
    """Return the NCP as a share: 0 nothing lost, 1 everything.

    >>> from stream_anon.core.hierarchy import Interval
    >>> ages = np.array([[20], [25], [70], [70]])
    >>> ncp_per_cell(Partition(ages, [np.array([0, 1]), np.array([2, 3])], [Interval(20, 70)]))
    0.05
    """
    return ncp(table) / (len(table.qi) * len(table.hierarchies))


def discernibility(table: Partition) -> int:
    """Return the sum of squared class sizes; a suppressed row counts as one that is like all others."""
    return int((table.sizes() ** 2).sum()) + table.suppressed * len(table.qi)


def average_class_size(table: Partition) -> float:
    """Return the average number of published rows per class."""
    return float(table.sizes().mean()) if len(table.classes) else 0.0


def cells_changed(table: Partition) -> int:
    """Return the Hamming distance: cells that are no longer exact; all of a suppressed row."""
    low, high = table.boxes()
    return int((low != high).sum(axis=1) @ table.sizes()) + table.suppressed * len(table.hierarchies)


def diameter(table: Partition) -> float:
    """Return the largest loss of any two rows of one class taken together, summed over the columns."""
    widest = 0.0
    for index in table.classes:
        rows = table.qi[index]
        low = np.minimum(rows[:, None, :], rows[None, :, :])
        high = np.maximum(rows[:, None, :], rows[None, :, :])
        pairs = sum(h.loss(low[:, :, q], high[:, :, q]) for q, h in enumerate(table.hierarchies))
        widest = max(widest, float(np.max(pairs)))
    return widest


def classification_metric(table: Partition, labels: Ints) -> float:
    """Return the share of rows without the most frequent label of their class; suppressed rows count as wrong."""
    wrong = table.suppressed
    for index in table.classes:
        wrong += len(index) - int(np.unique(labels[index], return_counts=True)[1].max())
    return wrong / len(table.qi)


def kl_divergence(table: Partition) -> float:
    """Return the sum of p log(p / p*): p is the rows' distribution, p* that of classes spread evenly over their boxes.

    Over published rows, in nats; a box has as many cells as combinations of values it covers.
    """
    low, high = table.boxes()
    cells = np.ones(len(low))
    left, right = low.copy(), high.copy()
    for q, hierarchy in enumerate(table.hierarchies):
        if isinstance(hierarchy, Tree):
            nodes = [hierarchy.node(a, b) for a, b in zip(low[:, q].tolist(), high[:, q].tolist(), strict=True)]
            left[:, q], right[:, q] = hierarchy.first[nodes], hierarchy.last[nodes]
        cells *= right[:, q] - left[:, q] + 1
    published = np.concatenate([np.asarray(index) for index in table.classes])
    points, counts = np.unique(table.qi[published], axis=0, return_counts=True)
    density = table.sizes() / (len(published) * cells)
    divergence = 0.0
    for point, count in zip(points, counts.tolist(), strict=True):
        covering = ((left <= point) & (point <= right)).all(axis=1)
        share = count / len(published)
        divergence += share * math.log(share / float(density[covering].sum()))
    return divergence
