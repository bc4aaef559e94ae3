"""Tell the observer what a worker does: how long its steps take, what waits, what left and how late."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

import numpy as np

from stream_anon.kafka.transport import AbortableError, Transport
from stream_anon.observe.observer import Observer
from stream_anon.worker.group_life import Published
from stream_anon.worker.pace.schedule import engine_bound
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.state.state import WorkerState

_ASK_EVERY = 2.0  # seconds between questions for the ends of paused partitions


class Reporter:
    """The words between a worker and its observer; it decides nothing."""

    def __init__(
        self, observer: Observer, transport: Transport, settings: WorkerSettings, clock: Callable[[], float]
    ) -> None:
        self._observer, self._transport, self._settings, self._clock = observer, transport, settings, clock
        self._ends: dict[int, int] = {}
        self._asked = float("-inf")
        self._lap = clock()

    def start(self) -> None:
        """Start the stopwatch of the steps."""
        self._lap = self._clock()

    def lap(self, stage: str) -> float:
        """Report how long a step took, since the one before it ended; return how long."""
        before, self._lap = self._lap, self._clock()
        self._observer.stage(stage, self._lap - before)
        return self._lap - before

    def published(self, groups: Sequence[Published], now: float, wall: float) -> None:
        """Report groups that became visible at `now`, and rows among them that left too late."""
        if not groups:
            return
        facts = [group.facts for group in groups]
        delays = now - np.concatenate([group.arrived for group in facts])
        self._observer.published(
            [group.reason for group in facts],
            [len(group.arrived) for group in facts],
            delays,
            wall - np.concatenate([group.born for group in facts]),
            np.array([group.losses for group in facts]),
        )
        for group in facts:
            for name, count in group.raised.items():
                self._observer.raised(name, count)
        bound = self._settings.delay
        if bound is not None and (late := int((delays > bound).sum())):
            self._observer.missed(late)

    def observe(self, ends: Mapping[int, int], state: WorkerState, paused: Collection[int]) -> None:
        """Report the end of a round: how far behind it reads, what waits and since when."""
        now = self._clock()
        for number, end in {**ends, **self._ends_of(paused, now)}.items():
            if number in state.partitions:
                self._observer.lag(number, max(0, end - state.partitions[number].position))
        deadline, bound = state.engines.next_deadline(), self._settings.delay
        known = deadline is not None and bound is not None
        oldest = max(0.0, now - (deadline - engine_bound(bound))) if known else 0.0  # type: ignore[operator, arg-type]
        self._observer.buffered(state.waiting, oldest, state.engines.open_clusters)
        self._observer.alive()

    def _ends_of(self, paused: Collection[int], now: float) -> dict[int, int]:
        """Ask the broker now and then for the ends of paused partitions: the client only hears of those it reads."""
        if paused and now - self._asked >= _ASK_EVERY:
            self._asked = now
            with suppress(AbortableError):  # the broker is not there for the moment
                self._ends = {number: end for number, (_, end) in self._transport.bounds(self._settings.input).items()}
        return {number: self._ends[number] for number in paused if number in self._ends}
