"""The part that all demos share: made-up records at a steady rate, a witness, an end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from threading import Event

from stream_anon.core.schema import Schema
from stream_anon.demo import FIELDS, admissions
from stream_anon.demo.witness import Check, Record, Witness
from stream_anon.errors import StreamAnonError
from stream_anon.observe.tally import Tally

STEP = 0.02
"""Seconds between arrivals: short against any bound, long enough to leave the processor alone."""

AT_ONCE = 5000
"""Records that arrive together at most, so that a rate beyond the machine's lowers the rate, not the deadlines."""


class MisfitError(StreamAnonError):
    """A policy asks for fields that the demo's records do not have."""


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """One group, before and after anonymization."""

    before: list[Record]
    after: list[Record]


class Performance(ABC):
    """One run of a demo; the clock is given. `tally` counts, `witness` judges, `last` is the group seen last."""

    tally: Tally

    def __init__(
        self,
        schema: Schema,
        rate: float,
        seconds: float,
        seed: int,
        clock: Callable[[], float],
        stopped: Event | None = None,
    ) -> None:
        _fit(schema)
        self.schema = schema
        self.rate = rate
        self.seconds = seconds
        self.bound = schema.policy.stream.max_delay.time
        self.witness = Witness(schema)
        self.last: BeforeAfter | None = None
        self._clock = clock
        self._source: Iterator[tuple[int, bytes]] = enumerate(admissions(seed))
        self._start = clock()
        self._stopped = stopped or Event()
        self._end: float | None = None

    @property
    def elapsed(self) -> float:
        """The seconds since the start, up to the last arrival."""
        return (self._end or self._clock()) - self._start

    @property
    def over(self) -> bool:
        """Whether no more records arrive."""
        return self._end is not None

    @property
    @abstractmethod
    def waiting(self) -> int:
        """The number of records that arrived and have not left."""

    def stop(self) -> None:
        """Let no more records arrive; what is inside is still published."""
        self._stopped.set()

    def run(self, sleep: Callable[[float], None], show: Callable[[Performance], None]) -> None:
        """Run to the end; `show` is called after each step."""
        self._start = self._clock()
        while self.elapsed < self.seconds and not self._stopped.is_set():
            behind = self._arrive()
            self._release_chosen()
            show(self)
            sleep(0.0 if behind else min(self._pause(), STEP))
        self._end = self._clock()
        for _ in self._finish():
            show(self)
        show(self)

    def checks(self) -> list[Check]:
        """Return the verdict at the end."""
        return list(self.witness.checks(self.tally.suppressed + self.tally.rejected.total()))

    def _arrive(self) -> bool:
        """Take in the records due by the rate; tell whether more are due than can be taken at once."""
        due = int(self.elapsed * self.rate) - self.witness.received
        records = list(islice(self._source, max(min(due, AT_ONCE), 0)))
        if records:
            now = self._clock()
            self.witness.arrive(records, now)
            self._take(records, now)
        return due > AT_ONCE

    @abstractmethod
    def _take(self, records: list[tuple[int, bytes]], now: float) -> None:
        """Take in numbered records."""

    @abstractmethod
    def _release_chosen(self) -> None:
        """Show the witness what is due to leave."""

    @abstractmethod
    def _pause(self) -> float:
        """Return the seconds until something may be due."""

    @abstractmethod
    def _finish(self) -> Iterator[None]:
        """Release everything that is left, step by step."""


def _fit(schema: Schema) -> None:
    names = {c.name for c in schema.quasi} | {c.name for c in schema.sensitive} | {schema.subject or FIELDS[0]}
    missing = sorted(names - set(FIELDS))
    if missing:
        raise MisfitError(f"the demo's records have no {', '.join(missing)}; their fields are: {', '.join(FIELDS)}")
