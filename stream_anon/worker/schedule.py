"""When to commit, and how early an engine must let go for that: two transactions lie between a group and its reader."""

from __future__ import annotations

from dataclasses import dataclass

_SHORTEST, _LONGEST = 0.02, 0.25  # seconds between transactions: below, overhead; above, delay nobody needs
_FIRST = 2_000  # records of the first poll
_LEAST = 100  # records of a poll: below, a round costs more than its records
_MOST_MARGIN = 0.5  # an engine keeps at least half the bound to find company in


@dataclass(slots=True)
class CommitSchedule:
    """A fixed tick, so that the time of a commit tells nothing; it slows when transactions take a large part of it."""

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
        """Whether the tick has come."""
        return now - self.last >= self.interval

    def wait(self, now: float) -> float:
        """Seconds until the tick."""
        return max(0.0, self.last + self.interval - now)

    def done(self, began: float, took: float) -> None:
        """A transaction took this long; the tick adapts slowly, and never beyond a sixteenth of the bound."""
        self._usual += 0.1 * (took - self._usual)
        most = _LONGEST if self.bound is None else max(self._base, self.bound / 16)
        self.interval = min(most, max(self._base, 2 * self._usual))
        ticks = int((began - self.last) / self.interval) if self.last > float("-inf") else 0
        self.last = self.last + ticks * self.interval if ticks else began


@dataclass(slots=True)
class PollLimit:
    """How many records a poll may bring: `most`, as many as can be grouped in a sixteenth of the bound, or as many as
    there is room for in the ledgers. The first bite is a small one: nothing is known of the machine yet.

    While a round is at work nothing is announced or published, so a slow machine must take smaller bites. What a
    transaction takes does not count: it would not be shorter for fewer records. What ledgers have no room for piles
    up from round to round, until a partition is paused.

    >>> portion = Portion(most=6_000, bound=4.0)
    >>> portion.limit(room=9_000)
    2000
    >>> portion.done(2_000, 0.05)
    >>> portion.limit(room=1_300), portion.limit(room=0), portion.limit(room=9_000)
    (1300, 100, 6000)
    >>> portion.done(2_000, 1.0)
    >>> portion.limit(room=9_000)
    500
    """

    most: int
    bound: float | None
    _in_time: int = 0

    def __post_init__(self) -> None:
        self._in_time = min(self.most, _FIRST)

    def limit(self, room: int) -> int:
        """Where the ledgers have room for so many more."""
        return min(self._in_time, max(_LEAST, room))

    def done(self, records: int, took: float) -> None:
        """So many records took this long. A few tell nothing: what a round costs in any case would weigh too much."""
        if records >= min(_LEAST, self._in_time) and took > 0:
            longest = _LONGEST if self.bound is None else self.bound / 16
            self._in_time = min(self.most, max(_LEAST, int(records * longest / took)))


def engine_bound(bound: float) -> float:
    """The bound an engine is given, so that announcing and publishing end before the user's.

    Four ticks: one to wait for the announcement, one for the publication, and each transaction may take one. Three
    tenths of the bound at least: ticks may slow down to a sixteenth of it, and a slow transaction takes as long as two.

    >>> engine_bound(5.0), engine_bound(0.2)
    (3.5, 0.1)
    """
    tick = min(_LONGEST, max(_SHORTEST, bound / 40))
    return round(bound - min(_MOST_MARGIN * bound, max(4 * tick + 0.2, 0.3 * bound)), 6)
