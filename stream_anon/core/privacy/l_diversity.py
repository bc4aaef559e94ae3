"""l-diversity in its three forms (Machanavajjhala et al., 2006)."""

from __future__ import annotations

import math

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import SLACK, SensitiveModel, distinct_each


class DistinctL(SensitiveModel):
    """At least l different values."""

    name = "l_diversity"

    def __init__(self, column: int, l: int) -> None:  # noqa: E741 - the literature's name
        super().__init__(column)
        self.l = l

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """Return the number of values still missing."""
        return float(max(0, self.l - len(values)))

    def shortfalls(self, rows: Batch, starts: Ints) -> Floats:
        """Return the number of values still missing in each group."""
        values = rows.sensitive[:, self.column]
        found = distinct_each(values, starts)
        if self.missing is not None:
            found = found - np.logical_or.reduceat(values == self.missing, starts[:-1])
        return np.maximum(0.0, self.l - found)


class EntropyL(SensitiveModel):
    """The entropy of the values is at least that of l equally frequent ones."""

    name = "l_diversity"

    def __init__(self, column: int, l: int) -> None:  # noqa: E741
        super().__init__(column)
        self.l = l

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """How many equally frequent values the group falls short of l."""
        share = counts / max(counts.sum(), 1)
        entropy = float(-(share * np.log(np.maximum(share, SLACK))).sum())
        return 0.0 if entropy >= math.log(self.l) - SLACK else self.l - math.exp(entropy)


class RecursiveL(SensitiveModel):
    """Recursive (c, l): the most frequent value is rarer than c times all from the l-th most frequent on."""

    name = "l_diversity"

    def __init__(self, column: int, l: int, c: float) -> None:  # noqa: E741
        super().__init__(column)
        self.l = l
        self.c = c

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """By how many people the most frequent value is too frequent, one more for the strict comparison."""
        ordered = np.sort(counts)[::-1]
        excess = float(ordered[:1].sum() - self.c * ordered[self.l - 1 :].sum())
        return 0.0 if len(values) and excess < -SLACK else max(excess, 0.0) + 1.0
