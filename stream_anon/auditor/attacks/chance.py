"""The chance to identify the person behind a record: one over the number of people who look the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chance:
    """The highest chance, the average over records, and the share of records whose chance is above 1/k."""

    highest: float
    mean: float
    above: float


class Chances:
    """A running summary of the chances in classes of records that look the same.

    >>> chances = Chances(k=2)
    >>> chances.add(np.array([1, 4]), np.array([1, 5]))
    >>> chances.all()
    Chance(highest=1.0, mean=0.375, above=0.166667)
    """

    def __init__(self, k: int) -> None:
        self._k = k
        self._highest = self._sum = 0.0
        self._above = self._records = 0

    def add(self, people: Ints, records: Ints) -> None:
        """Add classes with these numbers of people and records."""
        chance = 1 / np.maximum(people, 1)
        self._highest = max(self._highest, float(chance.max(initial=0.0)))
        self._sum += float((chance * records).sum())
        self._above += int(records[people < self._k].sum())
        self._records += int(records.sum())

    def all(self) -> Chance:
        """Return the chances of all records added so far."""
        count = max(self._records, 1)
        return Chance(round(self._highest, 6), round(self._sum / count, 6), round(self._above / count, 6))
