"""Loss without hierarchies, as L-clustering measures it: the uncertainty that an interval or a set leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints

Measure = Literal["entropy", "width"]


def uncertainty(size: Ints | Floats, measure: Measure = "entropy") -> Floats:
    """Return the uncertainty of `size` possible values: log2 of it, or how many more than one.

    >>> uncertainty(np.array([1, 4, 6])), uncertainty(np.array([1, 4, 6]), "width")
    (array([0.       , 2.       , 2.5849625]), array([0., 3., 5.]))
    """
    counts = np.asarray(size, dtype=np.float64)
    return np.log2(counts) if measure == "entropy" else counts - 1


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The loss of classes: ordered columns become intervals, unordered ones sets of the values in the class.

    `weights` multiply each column; `measure` is `entropy` (log2 of the number of values) or `width`.
    """

    ordered: Sequence[bool]
    weights: Sequence[float]
    measure: Measure = "entropy"

    def row_loss(self, rows: Ints) -> float:
        """Return what each row loses when these rows become one class."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        sizes = np.array(
            [high[q] - low[q] + 1 if ordered else len(np.unique(rows[:, q])) for q, ordered in enumerate(self.ordered)]
        )
        return float((uncertainty(sizes, self.measure) * np.asarray(self.weights)).sum())

    def table_loss(self, rows: Ints, classes: Sequence[Ints]) -> float:
        """Return the sum of the losses of all rows."""
        return sum(len(index) * self.row_loss(rows[index]) for index in classes)

    def relative_loss(self, rows: Ints, classes: Sequence[Ints]) -> float:
        """Return RL: the table's loss over its loss when everything is one class; 0 if that is 0."""
        everything = len(rows) * self.row_loss(rows)
        return self.table_loss(rows, classes) / everything if everything else 0.0
