"""The losses of the groups that left last: what "cheap" means for the moment."""

from __future__ import annotations

import numpy as np


class RecentLosses:
    """A ring of the last `memory` losses, `count` of which there were in all, and their average."""

    def __init__(self, memory: int) -> None:
        self.losses = np.zeros(memory)
        self.count = 0

    def add(self, loss: float) -> None:
        """One more group has left."""
        self.losses[self.count % len(self.losses)] = loss
        self.count += 1

    def average(self) -> float | None:
        """The average, added in the order of the ring; None before the first."""
        if not self.count:
            return None
        known = self.losses[: min(self.count, len(self.losses))]
        return float(np.cumsum(known)[-1] / len(known))
