"""The losses of the groups that left last: what "cheap" means for the moment."""

from __future__ import annotations

import numpy as np


class RecentLosses:
    """The moving average of the last `memory` losses; None before the first."""

    def __init__(self, memory: int) -> None:
        self._losses = np.zeros(memory)
        self._count = 0

    def add(self, loss: float) -> None:
        """One more group has left."""
        self._losses[self._count % len(self._losses)] = loss
        self._count += 1

    def average(self) -> float | None:
        """The average, summed in the order of the memory so that it is the same for the same losses."""
        if not self._count:
            return None
        known = self._losses[: min(self._count, len(self._losses))]
        return float(np.add.reduce(known) / len(known))
