"""Sums over the last minutes and the last hour, in memory that never grows; time is an argument."""

from __future__ import annotations

import numpy as np

from stream_anon.observe.observer import Floats


class Rolling:
    """A ring of slots of `step` seconds, each a row of sums. Slots are aligned to the clock, so rings can be added up.

    >>> ring = Rolling(width=1, step=2.0, slots=3)
    >>> ring.add(0, 5, now=10.0); ring.add(0, 1, now=13.0)
    >>> ring.rows(13.5)[:, 0].tolist(), ring.rows(15.0)[:, 0].tolist(), ring.rows(99.0)[:, 0].tolist()
    ([0.0, 5.0, 1.0], [5.0, 1.0, 0.0], [0.0, 0.0, 0.0])
    """

    def __init__(self, width: int, step: float, slots: int) -> None:
        self.step, self.slots = step, slots
        self._sums = np.zeros((slots, width))
        self._newest = -(10**9)

    def add(self, column: int | slice, values: float | Floats, now: float) -> None:
        """Add to the slot of this moment."""
        self._turn(now)
        self._sums[self._newest % self.slots, column] += values

    def rows(self, now: float) -> Floats:
        """Return all slots, the oldest first; the last one is not over yet."""
        self._turn(now)
        return np.roll(self._sums, -(self._newest % self.slots) - 1, axis=0)

    def end(self, now: float) -> float:
        """Return when the slot of this moment ends."""
        return (int(now // self.step) + 1) * self.step

    def _turn(self, now: float) -> None:
        """Empty the slots that time has passed; a clock that was set back goes on in the newest one."""
        slot = int(now // self.step)
        for passed in range(max(self._newest + 1, slot - self.slots + 1), slot + 1):
            self._sums[passed % self.slots] = 0.0
        self._newest = max(self._newest, slot)
