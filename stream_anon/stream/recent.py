"""The losses of the most recent groups, which decide what counts as cheap at the moment."""

from __future__ import annotations

import numpy as np


class RecentLosses:
    """A ring of the last `memory` losses with their average; `count` is how many were ever added."""

    def __init__(self, memory: int) -> None:
        self.losses = np.zeros(memory)
        self.count = 0

    def add(self, loss: float) -> None:
        """Add the loss of a group that has left."""
        self.losses[self.count % len(self.losses)] = loss
        self.count += 1

    def average(self) -> float | None:
        """Return the average, added in the order of the ring; None before the first."""
        if not self.count:
            return None
        known = self.losses[: min(self.count, len(self.losses))]
        return float(np.cumsum(known)[-1] / len(known))
