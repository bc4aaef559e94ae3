"""When to commit, and how early an engine must release: two transactions lie between a group and its reader."""

from __future__ import annotations

from dataclasses import dataclass

_SHORTEST, _LONGEST = 0.02, 0.25  # seconds between transactions: below, overhead; above, delay nobody needs
_FIRST = 2_000  # records of the first poll
_LEAST = 100  # records of a poll: below, a round costs more than its records
_MOST_MARGIN = 0.5  # an engine keeps at least half the bound to form groups in


@dataclass(slots=True)
class CommitSchedule:
    """A fixed tick, so that the time of a commit reveals nothing; it slows down when transactions take long."""

    bound: float | None
    interval: float = 0.0
    last: float = float("-inf")
    _usual: float = 0.0

    def __post_init__(self) -> None:
        self.interval = self._base

    @property
    def _base(self) -> float:
        return _LONGEST / 2 if self.bound is None else min(_LONGEST, max(_SHORTEST, self.bound / 40))

    def due(self, now: float) -> bool:
        """Tell whether the tick has come."""
        return now - self.last >= self.interval

    def wait(self, now: float) -> float:
        """Return the seconds until the tick."""
        return max(0.0, self.last + self.interval - now)

    def skip(self, now: float) -> None:
        """Wait for the next tick: there was nothing to commit."""
        self.last = now

    def done(self, began: float, took: float) -> None:
        """Adapt the tick slowly to how long a transaction took, never beyond a sixteenth of the bound."""
        self._usual += 0.1 * (took - self._usual)
        most = _LONGEST if self.bound is None else max(self._base, self.bound / 16)
        self.interval = min(most, max(self._base, 2 * self._usual))
        ticks = int((began - self.last) / self.interval) if self.last > float("-inf") else 0
        self.last = self.last + ticks * self.interval if ticks else began


@dataclass(slots=True)
class PollLimit:
    """The limit on how many records a poll may bring.

    It is `most`, as many as can be grouped in a sixteenth of the bound, or as many as there is room for in the ledgers.
    The first poll is small: throughput is still unknown.

    While a round is in progress nothing is announced or published, so a slow machine must poll fewer records. The time
    of a transaction does not count: it would not be shorter for fewer records. What ledgers have no room for piles
    up from round to round, until a partition is paused.

    >>> poll_limit = PollLimit(most=6_000, bound=4.0)
    >>> poll_limit.limit(room=9_000)
    2000
    >>> poll_limit.done(2_000, 0.05)
    >>> poll_limit.limit(room=1_300), poll_limit.limit(room=0), poll_limit.limit(room=9_000)
    (1300, 100, 6000)
    >>> poll_limit.done(2_000, 1.0)
    >>> poll_limit.limit(room=9_000)
    500
    """

    most: int
    bound: float | None
    _in_time: int = 0

    def __post_init__(self) -> None:
        self._in_time = min(self.most, _FIRST)

    def limit(self, room: int) -> int:
        """Return the limit, given that the ledgers have room for this many more records."""
        return min(self._in_time, max(_LEAST, room))

    def done(self, records: int, took: float) -> None:
        """Adapt the limit to how long these records took; ignore a few, as the fixed cost of a round would dominate."""
        if records >= min(_LEAST, self._in_time) and took > 0:
            longest = _LONGEST if self.bound is None else self.bound / 16
            self._in_time = min(self.most, max(_LEAST, int(records * longest / took)))


def engine_bound(bound: float) -> float:
    """Return the bound an engine is given, so that announcing and publishing end before the user's.

    Four ticks: one to wait for the announcement, one for the publication, and each transaction may take one. Three
    tenths of the bound at least: ticks may slow down to a sixteenth of it, and a slow transaction takes as long as two.

    >>> engine_bound(5.0), engine_bound(0.2)
    (3.5, 0.1)
    """
    tick = min(_LONGEST, max(_SHORTEST, bound / 40))
    return round(bound - min(_MOST_MARGIN * bound, max(4 * tick + 0.2, 0.3 * bound)), 6)
