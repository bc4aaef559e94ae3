"""The demo in one process: records through a pipeline, under a witness. Draws and prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.demo.performance import STEP, BeforeAfter, Performance
from stream_anon.local.pipeline import Pipeline


class Stage(Performance):
    """A demo that feeds records into a pipeline and shows its output to the witness."""

    def __init__(self, schema: Schema, rate: float, seconds: float, seed: int, clock: Callable[[], float]) -> None:
        super().__init__(schema, rate, seconds, seed, clock)
        self.pipeline = Pipeline(schema)
        self.tally = self.pipeline.tally

    @property
    def waiting(self) -> int:
        """The number of rows in the engine."""
        return len(self.pipeline.engine)

    def _take(self, records: list[tuple[int, bytes]], now: float) -> None:
        groups, _ = self.pipeline.feed(records, now)
        self._publish(groups)

    def _release_chosen(self) -> None:
        self._publish(self.pipeline.tick(self._clock()))

    def _pause(self) -> float:
        wait = self.pipeline.wait(self._clock())
        return STEP if wait is None else wait

    def _finish(self) -> Iterator[None]:
        for groups in self.pipeline.finish(self._clock()):
            self._publish(groups)
        yield

    def _publish(self, groups: Iterable[Group]) -> None:
        for group in groups:
            lines = group.encoded()
            now = self._clock()
            self.last = BeforeAfter(*self.witness.leave(group.rows.ref[:, 1].tolist(), lines, now))
            self.pipeline.published([group], now)
