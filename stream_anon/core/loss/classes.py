"""What the papers measure of classes, as sums that parts of a table have by themselves and that add up exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints, ValueSet
from stream_anon.core.hierarchy.cover import covered
from stream_anon.core.loss.columns import ColumnSums, ColumnUtility

Names = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)

MOST_POINTS = 1_000
"""Different rows of one class up to which the two that are farthest apart are sought; of more, the box counts."""


@dataclass(frozen=True)
class ClassMeasures:
    """How large the classes are, what that costs, and what is left in the columns.

    `average_class_size` is rows per class over k, 1 at best (C_AVG, LeFevre et al., 2006). `discernibility` counts for
    each row how many it cannot be told from, a suppressed one not from anybody (DM, Bayardo and Agrawal, 2005), per
    row. `classification` is the share of rows whose value is not the most frequent one of their class, per sensitive
    attribute, suppressed rows included (CM, Iyengar, 2002). `hamming` is the share of cells that are not published
    exactly, all of a suppressed row.

    Of published rows alone: `bits` is the uncertainty that labels leave, the binary logarithm of how many combinations
    of values they cover. `kl_divergence`, in nats, is how far the rows of each class are from being spread evenly over
    what its labels cover; where labels of two classes overlap a reader knows a little more, and it is less. `diameter`
    is the largest loss of two rows of a class taken together, summed over the columns.
    """

    average_class_size: float
    discernibility: float
    classification: dict[str, float]
    hamming: float
    bits: float
    kl_divergence: float
    diameter: float
    columns: dict[str, ColumnUtility]

    def data(self) -> dict[str, Any]:
        """Return the measures as plain data, rounded."""
        return {name: _rounded(value) for name, value in asdict(self).items()}


def _rounded(value: Any) -> Any:
    return {name: _rounded(own) for name, own in value.items()} if isinstance(value, dict) else round(value, 5)


@dataclass(frozen=True)
class Classes:
    """Classes of published rows: class g has the rows from `starts[g]` up to `starts[g + 1]`.

    `qi` are their positions and `sensitive` their codes as they came, `low` and `high` the boxes of the classes, and
    `losses` what each class loses in each column.
    """

    qi: Ints
    sensitive: Ints
    starts: Sequence[int]
    low: Ints
    high: Ints
    losses: Floats


class ClassSums:
    """Sums over the classes of one table, or of a part of it.

    `columns` has the name and the hierarchy of each quasi-identifier, `bins` the first positions of the bins in which
    its distribution is compared: the same for all parts.
    """

    def __init__(
        self, columns: Sequence[tuple[str, Hierarchy]], sensitive: Sequence[str], bins: Sequence[Sequence[int]]
    ) -> None:
        self._columns, self._sensitive = tuple(columns), tuple(sensitive)
        self._rows = self._classes = self._suppressed = 0
        self._squares = self._changed = self._bits = self._divergence = self._diameter = 0.0
        self._common = [0] * len(self._sensitive)
        self._utility = ColumnSums(self._columns, bins)

    def add(self, classes: Classes) -> None:
        """Add classes of rows that are published."""
        starts = np.array(classes.starts, dtype=np.int64)
        sizes = np.diff(starts)
        if not len(sizes):
            return
        left, right = np.empty_like(classes.low), np.empty_like(classes.high)
        cells = np.empty(left.shape)
        for q, (_, hierarchy) in enumerate(self._columns):
            left[:, q], right[:, q] = covered(hierarchy, classes.low[:, q], classes.high[:, q])
            cells[:, q] = right[:, q] - left[:, q] + 1.0
            if isinstance(hierarchy, ValueSet):  # what lies between its ends is not among what is published
                cells[:, q] = np.maximum(np.round(classes.losses[:, q] * hierarchy.size), 1.0)
        open_to = np.log2(cells).sum(axis=1)
        group = np.repeat(np.arange(len(sizes)), sizes)
        self._rows += len(group)
        self._classes += len(sizes)
        self._squares += float((sizes.astype(np.float64) ** 2).sum())
        self._changed += float(sizes @ (cells > 1).sum(axis=1))
        self._bits += float(sizes @ open_to)
        alike = _runs(np.sort(_named(group, classes.qi)))
        self._divergence += math.log(2) * float(sizes @ open_to) + _times_log(alike) - _times_log(sizes)
        for s in range(len(self._sensitive)):
            self._common[s] += _most_frequent(group, classes.sensitive[:, s])
        self._diameter = max(self._diameter, _diameter(classes, [h for _, h in self._columns], self._diameter))
        self._utility.add(classes.qi, starts, left, right)

    def suppress(self, count: int) -> None:
        """Count rows that are not published."""
        self._suppressed += count

    def figures(self) -> dict[str, Any]:
        """Return all sums as plain data: what `merge` takes."""
        return {
            "rows": self._rows,
            "classes": self._classes,
            "suppressed": self._suppressed,
            "squares": self._squares,
            "changed": self._changed,
            "bits": self._bits,
            "divergence": self._divergence,
            "diameter": self._diameter,
            "common": self._common,
            "utility": self._utility.figures(),
        }

    def merge(self, figures: Mapping[str, Any]) -> None:
        """Add the sums of another part of the table."""
        self._rows += figures["rows"]
        self._classes += figures["classes"]
        self._suppressed += figures["suppressed"]
        self._squares += figures["squares"]
        self._changed += figures["changed"]
        self._bits += figures["bits"]
        self._divergence += figures["divergence"]
        self._diameter = max(self._diameter, figures["diameter"])
        self._common = [own + more for own, more in zip(self._common, figures["common"], strict=True)]
        self._utility.merge(figures["utility"])

    def measures(self, k: int) -> ClassMeasures:
        """Return what the papers measure, under a policy that asks for k people."""
        rows, total = max(self._rows, 1), max(self._rows + self._suppressed, 1)
        width = len(self._columns)
        lost = [(self._rows + self._suppressed - common) / total for common in self._common]
        return ClassMeasures(
            average_class_size=self._rows / max(self._classes, 1) / k,
            discernibility=(self._squares + float(self._suppressed) * total) / total,
            classification=dict(zip(self._sensitive, lost, strict=True)),
            hamming=(self._changed + self._suppressed * width) / (total * max(width, 1)),
            bits=self._bits / rows,
            kl_divergence=max(self._divergence / rows, 0.0),
            diameter=self._diameter,
            columns=self._utility.utility(),
        )


def _named(group: Ints, qi: Ints) -> Names:
    """Return a number for each row that others of its class have only if they are alike, but for one chance in 2^40."""
    name = group.astype(np.uint64)
    for column in qi.T:
        name = name * _ODD + column.astype(np.uint64)
        name ^= name >> np.uint64(29)
    return name * _ODD


def _runs(ordered: Names) -> Ints:
    """Return how often each different number is there."""
    return np.diff(np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])))


def _times_log(counts: Ints) -> float:
    """Return the sum of n ln n: counts repeat, so each different one is taken once."""
    times = np.bincount(counts)
    found = np.flatnonzero(times)
    return float(times[found] @ (found * np.log(np.maximum(found, 1))))


def _most_frequent(group: Ints, codes: Ints) -> int:
    """Return how many rows have the most frequent code of their class.

    >>> _most_frequent(np.array([0, 0, 0, 1, 1]), np.array([7, 9, 7, 9, 7]))
    3
    """
    bits = np.uint64(63 - int(group[-1]).bit_length())  # those of a hash of the code, below the number of the class
    pairs = np.sort((group.astype(np.uint64) << bits) | ((codes.astype(np.uint64) * _ODD) >> (np.uint64(64) - bits)))
    counts = _runs(pairs)
    of = pairs[np.cumsum(counts) - 1] >> bits
    first = np.flatnonzero(np.concatenate([[True], of[1:] != of[:-1]]))
    return int(np.maximum.reduceat(counts, first).sum())


def _diameter(classes: Classes, hierarchies: Sequence[Hierarchy], known: float) -> float:
    """Return the largest loss of two rows of one class, if it is more than what is known."""
    bound = classes.losses.sum(axis=1)
    for g in np.argsort(-bound, kind="stable").tolist():
        if bound[g] <= known:
            break
        points = np.unique(classes.qi[classes.starts[g] : classes.starts[g + 1]], axis=0)
        if len(points) > MOST_POINTS:
            return float(bound[g])
        pairs = np.zeros((len(points), len(points)))
        for q, hierarchy in enumerate(hierarchies):
            low = np.minimum.outer(points[:, q], points[:, q])
            high = np.maximum.outer(points[:, q], points[:, q])
            if isinstance(hierarchy, ValueSet):
                pairs += np.where(low == high, 0.0, 2 / hierarchy.size)
            else:
                pairs += hierarchy.loss(low, high)
        known = max(known, float(pairs.max()))
    return known
