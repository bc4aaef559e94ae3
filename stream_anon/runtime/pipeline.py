"""Decode, slice, push, tick, tally: the steps every run without Kafka takes, in one place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_anon.core.decode import Payload, Rejection
from stream_anon.core.encode import Encoder
from stream_anon.core.group import Group
from stream_anon.core.schema import Schema
from stream_anon.observe.tally import Tally
from stream_anon.stream import build
from stream_anon.stream.anonymizer import Outcome


class Pipeline:
    """One encoder, one engine, one tally. A row's ref is (0, the number of its record)."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.engine = build(schema)
        self.tally = Tally([column.name for column in schema.quasi], schema.requirements.k)
        self._encoder = Encoder(schema)

    def feed(self, records: Sequence[tuple[int, Payload]], now: float) -> tuple[list[Group], list[Rejection]]:
        """Take numbered records that arrived at `now`. A rejection's index is the number of its record."""
        n = len(records)
        ref = np.zeros((n, 2), dtype=np.int64)
        ref[:, 1] = [number for number, _ in records]
        encoded = self._encoder.encode([payload for _, payload in records], ref, np.full(n, now))
        rejections = [Rejection(records[r.index][0], r.code, r.column) for r in encoded.rejections]
        self.tally.read(n, rejections)
        groups: list[Group] = []
        batch = encoded.batch
        while len(batch):
            outcome = self.engine.push(batch, now)
            groups += self._note(outcome, now)
            if outcome.rest == len(batch):  # full, and nothing is due: make room by letting the oldest go early
                groups += self._note(self.engine.flush(), now)
            batch = batch.take(slice(len(batch) - outcome.rest, None))
        return groups, rejections

    def tick(self, now: float) -> list[Group]:
        """Let time pass."""
        return self._note(self.engine.tick(now), now)

    def finish(self, now: float) -> list[Group]:
        """The end of the input: everything is due."""
        return self._note(self.engine.flush(), now)

    def wait(self, now: float) -> float | None:
        """Seconds until the next deadline, None if there is none."""
        deadline = self.engine.next_deadline()
        return None if deadline is None else max(0.0, deadline - now)

    def _note(self, outcome: Outcome, now: float) -> list[Group]:
        self.tally.publish(outcome.groups, now)
        if outcome.suppressed is not None:
            self.tally.suppress(outcome.suppressed.arrived)
        return outcome.groups
