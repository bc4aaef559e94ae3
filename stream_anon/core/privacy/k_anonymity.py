"""k-anonymity: at least k different people."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import PrivacyModel, distinct, distinct_each
from stream_anon.core.privacy.counting import CountRule
from stream_anon.core.privacy.settings import MOST, PlainModelSettings


class KAnonymity(PrivacyModel):
    """Nobody is told apart from fewer than k - 1 others (Samarati and Sweeney, 1998)."""

    name = "k_anonymity"
    blind = True
    monotone = True

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

    def counted(self) -> tuple[CountRule, ...]:
        """Return no rule on values: its k is all there is to count."""
        return ()


class KAnonymitySettings(PlainModelSettings):
    """At least k different people in every group."""

    model: Literal["k_anonymity"]
    k: int = Field(ge=2, le=MOST)
    forms = (KAnonymity,)

    @property
    def people(self) -> int:
        """The number of people that it asks for in a group."""
        return self.k

    def build(self) -> KAnonymity:
        """Return the model that these settings describe."""
        return KAnonymity(self.k)
