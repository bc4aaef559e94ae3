"""Anonymize inside a Bytewax dataflow: one stateful step, whose snapshot is what waits.

Bytewax starts again from its last snapshot. To keep the promise that a record is published in one group only, the sink
must be part of that snapshot too, as a transaction; a sink that merely appends may see a record in two groups after a
crash. `stream-anon run` does this for Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic
from bytewax.testing import TestingSink, TestingSource, run_main
from visits import policy, visits

import stream_anon


class AnonymizeStep(StatefulBatchLogic[dict[str, Any], Any, bytes]):
    """The step: records in, groups out, and a call by the clock when the oldest record is due."""

    def __init__(self, state: bytes | None) -> None:
        restored = stream_anon.Anonymizer.restore(policy(), state) if state else stream_anon.Anonymizer(policy())
        self._anonymizer = restored

    def on_batch(self, values: list[dict[str, Any]]) -> tuple[Iterable[Any], bool]:
        return self._anonymizer.feed(values, now=_now()), False

    def on_notify(self) -> tuple[Iterable[Any], bool]:
        return self._anonymizer.tick(now=_now()), False

    def notify_at(self) -> datetime | None:
        due = self._anonymizer.next_deadline
        return None if due is None else datetime.fromtimestamp(due, UTC)

    def on_eof(self) -> tuple[Iterable[Any], bool]:
        return self._anonymizer.finish(now=_now()), True

    def snapshot(self) -> bytes:
        return self._anonymizer.waiting()


def _now() -> float:
    return datetime.now(UTC).timestamp()  # Bytewax calls back by the wall clock


published: list[Any] = []
flow = Dataflow("anonymize")
records = op.input("visits", flow, TestingSource(visits(600), batch_size=50))
keyed = op.key_on("one window for all", records, lambda record: "all")
groups = op.stateful_batch("anonymize", keyed, AnonymizeStep)
op.output("groups", op.map("without key", groups, lambda pair: pair[1]), TestingSink(published))
run_main(flow)

sizes = [len(group) for group in published]
print(f"{sum(sizes)} records published in {len(sizes)} groups, the smallest of {min(sizes)}")
assert min(sizes) >= 5
assert sum(sizes) >= 590
