"""What a model's definition takes from the whole, learned from the rows that arrive; unknown until enough were seen."""

from __future__ import annotations

from collections import Counter

import numpy as np
from pydantic import Field

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.grammar.fields import Settings


class RunningEstimate(Settings):
    """Learn from the records themselves, and publish nothing before `after` of them have been seen."""

    after: int = Field(ge=1, le=10**12)


class RunningDistribution:
    """The shares of a sensitive column's values among all rows seen."""

    def __init__(self, column: int, after: int) -> None:
        self._column = column
        self._after = after
        self._counts: Counter[int] = Counter()
        self._seen = 0

    def learn(self, rows: Batch) -> None:
        """Count the values of more rows."""
        self._counts.update(rows.sensitive[:, self._column].tolist())
        self._seen += len(rows)

    def __call__(self) -> tuple[Ints, Floats] | None:
        """Codes in their order and shares, or None before enough rows."""
        if self._seen < self._after:
            return None
        codes = np.array(sorted(self._counts), dtype=np.int64)
        return codes, np.array([self._counts[code] for code in codes.tolist()]) / self._seen


class RunningWishes:
    """How much people want each value of a column protected, and the alpha that follows."""

    def __init__(self, column: int, after: int, floor: float) -> None:
        self._column = column
        self._after = after
        self._floor = floor
        self._wishes: dict[int, Counter[int]] = {}
        self._seen = 0

    def learn(self, rows: Batch) -> None:
        """Count the wishes of more rows."""
        for value, wish in zip(
            rows.sensitive[:, self._column].tolist(), rows.psf[:, self._column].tolist(), strict=True
        ):
            self._wishes.setdefault(value, Counter())[wish] += 1
        self._seen += len(rows)

    def known(self) -> bool:
        """Whether enough rows were seen."""
        return self._seen >= self._after

    def protection(self, value: int) -> float:
        """prf: the share of people with the value who want it protected, the undecided counted as half."""
        wishes = self._wishes[value]
        return (wishes[1] + wishes[0] / 2) / wishes.total()

    def __call__(self, value: int) -> float | None:
        """alpha = 1 - prf, never below the floor; None before enough rows."""
        if self._seen < self._after or value not in self._wishes:
            return None
        return max(1 - self.protection(value), self._floor)
