"""Measures of the papers that look at classes as a whole: sizes, discernibility, classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stream_anon.core.hierarchy import Ints


@dataclass(frozen=True)
class ClassMeasures:
    """How large the classes are, and what that costs.

    `average_class_size` is rows per class over k, 1 at best (C_AVG, LeFevre et al., 2006). `discernibility` counts for
    each row how many it cannot be told from, a suppressed one not from anybody (DM, Bayardo and Agrawal, 2005), per
    row. `classification` is the share of rows whose value is not the most frequent one of their class, per sensitive
    attribute, suppressed rows included (CM, Iyengar, 2002).
    """

    average_class_size: float
    discernibility: float
    classification: dict[str, float]

    def data(self) -> dict[str, Any]:
        """Return the measures as plain data, rounded.

        >>> ClassMeasures(1.0, 2.0, {"illness": 1 / 3}).data()["classification"]
        {'illness': 0.33333}
        """
        found = asdict(self)
        found["classification"] = {name: round(share, 5) for name, share in self.classification.items()}
        return {
            **found,
            "average_class_size": round(self.average_class_size, 5),
            "discernibility": round(self.discernibility, 5),
        }


def measure_classes(
    sizes: Sequence[int], sensitive: Ints, names: Sequence[str], suppressed: int, k: int
) -> ClassMeasures:
    """Measure classes: `sizes` rows of each, whose sensitive codes follow one another in `sensitive`.

    >>> measure_classes([2, 3], np.array([[1], [1], [1], [2], [2]]), ["illness"], suppressed=0, k=2)
    ClassMeasures(average_class_size=1.25, discernibility=2.6, classification={'illness': 0.2})
    """
    count, rows = np.asarray(sizes, dtype=np.int64), int(sum(sizes))
    total = rows + suppressed
    group = np.repeat(np.arange(len(count)), count)
    shares = {}
    for s, name in enumerate(names):
        _, code = np.unique(sensitive[:, s], return_inverse=True)
        pairs, times = np.unique(group * (int(code.max(initial=0)) + 1) + code, return_counts=True)
        most = np.zeros(len(count), dtype=np.int64)
        np.maximum.at(most, pairs // (int(code.max(initial=0)) + 1), times)
        shares[name] = (total - int(most.sum())) / max(total, 1)
    return ClassMeasures(
        average_class_size=rows / max(len(count), 1) / k,
        discernibility=(float((count.astype(np.float64) ** 2).sum()) + float(suppressed) * total) / max(total, 1),
        classification=shares,
    )
