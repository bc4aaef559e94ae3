"""k-anonymity: at least k different people."""

from __future__ import annotations

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import PrivacyModel, distinct, distinct_each


class KAnonymity(PrivacyModel):
    """Nobody is told apart from fewer than k - 1 others (Samarati and Sweeney, 1998)."""

    name = "k_anonymity"

    def __init__(self, k: int) -> None:
        self.k = k

    def shortfall(self, rows: Batch) -> float:
        """Return the number of people still missing."""
        return float(max(0, self.k - distinct(rows.subject)))

    def shortfalls(self, rows: Batch, starts: Ints) -> Floats:
        """Return the number of people still missing in each group."""
        return np.maximum(0.0, self.k - distinct_each(rows.subject, starts))

    def gains(self, rows: Batch, candidates: Batch) -> Floats:
        """1 for somebody new while people are missing."""
        if self.shortfall(rows) == 0.0:
            return np.zeros(len(candidates))
        return np.where(np.isin(candidates.subject, rows.subject), 0.0, 1.0)
