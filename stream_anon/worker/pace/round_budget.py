"""How much processor time one round may take: status, heartbeats, commits and stops wait for its end."""

from __future__ import annotations

import time
from collections.abc import Callable

_SHARE = 8  # a round takes an eighth of the bound at most,
_LEAST, _MOST = 0.25, 1.0  # but no less and no more than so many seconds


class RoundBudget:
    """The processor time of a round, of the thread that runs it; what is due and not done waits for the next round.

    >>> spent = iter([10.0, 10.2, 10.6])
    >>> budget = RoundBudget(bound=4.0, clock=lambda: next(spent))
    >>> budget.start()
    >>> budget.more(), budget.more()
    (True, False)
    """

    def __init__(self, bound: float | None, clock: Callable[[], float] = time.thread_time) -> None:
        self._seconds = _MOST if bound is None else min(_MOST, max(_LEAST, bound / _SHARE))
        self._clock = clock
        self._began = 0.0
        self._over = False

    def start(self) -> None:
        """Begin a round: its time counts from now."""
        self._began = self._clock()

    def end(self) -> None:
        """Allow no more, from now on: the worker stops. Another thread may say so."""
        self._over = True

    def more(self) -> bool:
        """Tell whether the round may begin another piece of work."""
        return not self._over and self._clock() - self._began < self._seconds
