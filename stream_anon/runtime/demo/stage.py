"""The demo's loop: made-up records at a steady rate through a pipeline, under a witness. Draws and prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

from stream_anon.core.group import Group
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.runtime.demo import FIELDS, admissions
from stream_anon.runtime.demo.witness import Record, Witness
from stream_anon.runtime.pipeline import Pipeline

STEP = 0.02
"""Seconds between arrivals: short against any bound, long enough to leave the processor alone."""

AT_ONCE = 5000
"""Records that arrive together at most, so that a rate beyond the machine's lowers the rate, not the deadlines."""


class MisfitError(StreamAnonError):
    """A policy asks for fields that the demo's records do not have."""


@dataclass(frozen=True, slots=True)
class Sight:
    """One group, before and after."""

    before: list[Record]
    after: list[Record]


class Stage:
    """One performance; the clock is given."""

    def __init__(self, schema: Schema, rate: float, seconds: float, seed: int, clock: Callable[[], float]) -> None:
        _fit(schema)
        self.rate = rate
        self.seconds = seconds
        self.pipeline = Pipeline(schema)
        self.witness = Witness(schema)
        self.last: Sight | None = None
        self._clock = clock
        self._source = enumerate(admissions(seed))
        self._start = clock()
        self._stopped = False
        self._end: float | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the start, up to the last arrival."""
        return (self._end or self._clock()) - self._start

    @property
    def over(self) -> bool:
        """Whether no more records arrive."""
        return self._end is not None

    def stop(self) -> None:
        """Let no more records arrive; what is inside is still published."""
        self._stopped = True

    def run(self, sleep: Callable[[float], None], show: Callable[[Stage], None]) -> None:
        """Play to the end; `show` is called after each step."""
        self._start = self._clock()
        while self.elapsed < self.seconds and not self._stopped:
            behind = self._arrive()
            self._publish(self.pipeline.tick(self._clock()))
            show(self)
            wait = self.pipeline.wait(self._clock())
            sleep(0.0 if behind else STEP if wait is None else min(wait, STEP))
        self._end = self._clock()
        for groups in self.pipeline.finish(self._end):
            self._publish(groups)
        show(self)

    def _arrive(self) -> bool:
        """Take in what is due by the rate; whether more is due than can be taken at once."""
        due = int(self.elapsed * self.rate) - self.witness.received
        records = list(islice(self._source, max(min(due, AT_ONCE), 0)))
        if records:
            now = self._clock()
            self.witness.arrive(records, now)
            groups, _ = self.pipeline.feed(records, now)
            self._publish(groups)
        return due > AT_ONCE

    def _publish(self, groups: Iterable[Group]) -> None:
        for group in groups:
            lines = group.encoded()
            now = self._clock()
            self.last = Sight(*self.witness.leave(group.rows.ref[:, 1].tolist(), lines, now))
            self.pipeline.published([group], now)


def _fit(schema: Schema) -> None:
    names = {c.name for c in schema.quasi} | {c.name for c in schema.sensitive} | {schema.subject or FIELDS[0]}
    missing = sorted(names - set(FIELDS))
    if missing:
        raise MisfitError(f"the demo's records have no {', '.join(missing)}; their fields are: {', '.join(FIELDS)}")
