"""The demo in one process: records through a pipeline, under a witness. Draws and prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.demo.performance import STEP, BeforeAfter, Performance
from stream_anon.local.pipeline import Pipeline
from stream_anon.observe.observer import Observer


class Stage(Performance):
    """A demo that feeds records into a pipeline and shows its output to the witness; the observer sees it all."""

    def __init__(
        self,
        schema: Schema,
        rate: float,
        seconds: float,
        seed: int,
        clock: Callable[[], float],
        observer: Observer | None = None,
    ) -> None:
        super().__init__(schema, rate, seconds, seed, clock)
        self.pipeline = Pipeline(schema)
        self.tally = self.pipeline.tally
        self._observer = observer or Observer()
        self._suppressed = 0

    @property
    def waiting(self) -> int:
        """The number of rows in the engine."""
        return len(self.pipeline.engine)

    def _take(self, records: list[tuple[int, bytes]], now: float) -> None:
        groups, rejections = self.pipeline.feed(records, now)
        self._observer.consumed(len(records))
        for rejection in rejections:
            self._observer.rejected(str(rejection.code), 1)
        self._publish(groups)

    def _release_chosen(self) -> None:
        self._publish(self.pipeline.tick(self._clock()))
        self._tell()

    def _pause(self) -> float:
        wait = self.pipeline.wait(self._clock())
        return STEP if wait is None else wait

    def _finish(self) -> Iterator[None]:
        for groups in self.pipeline.finish(self._clock()):
            self._publish(groups)
        self._tell()
        yield

    def _tell(self) -> None:
        """Tell the observer what waits, and what was suppressed since the last time."""
        deadline, now = self.pipeline.deadline, self._clock()
        oldest = 0.0 if deadline is None or self.bound is None else max(0.0, now - (deadline - self.bound))
        self._observer.buffered(self.waiting, oldest, 0)
        if (new := self.tally.suppressed - self._suppressed) > 0:
            self._observer.suppressed("deadline", new)
            self._suppressed += new
        self._observer.alive()

    def _publish(self, groups: Iterable[Group]) -> None:
        for group in groups:
            lines = group.encoded()
            now = self._clock()
            self.last = BeforeAfter(*self.witness.leave(group.rows.ref[:, 1].tolist(), lines, now))
            self.pipeline.published([group], now)
            waits = now - group.arrived
            ages = np.full(len(waits), np.nan)
            self._observer.published([str(group.reason)], [len(group)], waits, ages, group.losses[np.newaxis])
            if self.bound is not None and (late := int((waits > self.bound).sum())):
                self._observer.missed(late)
