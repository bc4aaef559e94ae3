"""Decode, slice, push, tick, tally: the steps every run without Kafka takes, in one place. Never looks at a clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.decode import Payload, Rejection
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.observe.tally import Tally
from stream_anon.stream import build
from stream_anon.stream.outcome import Outcome

EARLY, AT_MOST = 0.1, 0.5
"""The share of the bound, and the seconds, that are kept for choosing groups and writing them."""


class Pipeline:
    """One encoder, one engine, one tally. A row's ref is (0, the number of its record).

    The bound is the reader's: the engine's clock runs ahead of the caller's, so that a group is out, not only formed,
    when its oldest row is due. A buffer that fills is no reason to stop or to drop: its oldest rows are due early.
    """

    def __init__(self, schema: Schema, stable_subjects: bool = False) -> None:
        self.schema = schema
        self.engine = build(_with_room(schema))
        self.tally = Tally([column.name for column in schema.quasi], schema.requirements.k, schema.counts)
        self.bound = schema.policy.stream.max_delay.time
        self.late = 0  # rows published after the bound
        self.hurried = 0  # groups that left before their time because the buffer was full
        self._early = 0.0 if self.bound is None else min(EARLY * self.bound, AT_MOST)
        self._ahead = -np.inf  # the engine's clock, which never runs backwards
        self._encoder = Encoder(schema, stable_subjects)

    def feed(self, records: Sequence[tuple[int, Payload]], now: float) -> tuple[list[Group], list[Rejection]]:
        """Take numbered records that arrived at `now`. A rejection's index is the number of its record."""
        n = len(records)
        ref = np.zeros((n, 2), dtype=np.int64)
        ref[:, 1] = [number for number, _ in records]
        encoded = self._encoder.encode([payload for _, payload in records], ref, np.full(n, now))
        rejections = [Rejection(records[r.index][0], r.code, r.column) for r in encoded.rejections]
        self.tally.read(n, rejections)
        return self.push(encoded.batch, now), rejections

    def push(self, batch: Batch, now: float) -> list[Group]:
        """Take rows that are encoded already; the last of them arrived at `now`."""
        groups: list[Group] = []
        while len(batch):
            outcome = self.engine.push(batch, self._reach(now))
            groups += self._released(outcome, now)
            if outcome.rest == len(batch):  # full of rows held back, which the policy would keep for ever
                groups += self._released(self.engine.flush(), now)
            batch = batch.take(slice(len(batch) - outcome.rest, None))
        return groups

    def tick(self, now: float) -> list[Group]:
        """Let time pass without arrivals."""
        return self._released(self.engine.tick(self._reach(now)), now)

    def finish(self, now: float) -> Iterator[list[Group]]:
        """Treat everything as due, the oldest rows first, a part at a time, so that they are out in time."""
        while (deadline := self.engine.next_deadline()) is not None:
            yield self._released(self.engine.tick(self._reach(max(now, deadline)), closing=True), now)
        yield self._released(self.engine.flush(), now)

    def published(self, groups: Sequence[Group], now: float) -> None:
        """Note that these groups were out at `now`."""
        self.tally.publish(groups, now)
        if self.bound is not None:
            for group in groups:
                self.late += int(np.count_nonzero(now - group.arrived > self.bound))

    @property
    def deadline(self) -> float | None:
        """When `tick` must be called at the latest, on the caller's clock; None if nothing waits for the clock."""
        deadline = self.engine.next_deadline()
        return None if deadline is None else deadline - self._early

    def wait(self, now: float) -> float | None:
        """Return the seconds until something is due, None if nothing is."""
        deadline = self.deadline
        return None if deadline is None else max(0.0, deadline - now)

    def take_back(self, rows: Batch) -> None:
        """Take rows up again that waited elsewhere; they keep their numbers and ages, and nothing leaves yet."""
        self._ahead = max(self._ahead, float(rows.arrived.max()))
        self.engine.take_back(rows)

    def _reach(self, now: float) -> float:
        self._ahead = max(self._ahead, now + self._early)
        return self._ahead

    def _released(self, outcome: Outcome, now: float) -> list[Group]:
        """Note what left. A group that the clock makes leave, due or by a planned sweep, was not hurried."""
        if outcome.suppressed is not None:
            self.tally.suppress(outcome.suppressed.arrived)
        if self._hurries():
            due = now + self._early - (np.inf if self.bound is None else self.bound)
            self.hurried += sum(bool(group.arrived.min() > due) for group in outcome.crowded_out)
        return outcome.groups

    def _hurries(self) -> bool:
        """Whether a row may be due by the size of the buffer before it is due by the policy."""
        asked = self.schema.policy.stream.max_delay.records
        return asked is None or asked > _most(self.schema)


def _most(schema: Schema) -> int:
    """Later arrivals that a row may see before the buffer, an eighth of which stays free for what comes, is full."""
    limit = schema.policy.stream.max_buffer
    return max(limit - limit // 8 - 1, schema.requirements.k)


def _with_room(schema: Schema) -> Schema:
    """Return the policy, its delay by records shortened to what the buffer can hold: no privacy model is touched."""
    stream = schema.policy.stream
    records = min(stream.max_delay.records or _most(schema), _most(schema))
    delay = stream.max_delay.model_copy(update={"records": records})
    shortened = stream.model_copy(update={"max_delay": delay})
    return replace(schema, policy=schema.policy.model_copy(update={"stream": shortened}))
