"""The transport's own read positions: a client that skipped records it never delivered is set back, once.

What lies below the position and was not delivered counts as finished: markers, and what compaction took. So a record
that a client skips, in a race of seeking and fetching or because an error threw away what it had read, would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka import errors as client_errors

_GONE = (client_errors.IllegalStateError, AssertionError, KeyError, ValueError)


class Reading:
    """The read positions of one consumer. After a seek, a gap before the first record is accepted when seen twice."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self._next: dict[TopicPartition, int] = {}
        self._looks: dict[TopicPartition, int] = {}  # partitions that have brought nothing since reading began anew

    def begin(self, tp: TopicPartition, offset: int) -> None:
        """Read from `offset` on; do nothing if the partition is no longer assigned."""
        try:
            self._consumer.seek(tp, offset)
        except _GONE:
            self._forget(tp)
            return
        self._next[tp], self._looks[tp] = offset, 0

    def again(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue after the last delivered record, whatever the client remembers."""
        for tp in partitions:
            if tp in self._next:
                self.begin(tp, self._next[tp])

    def check(self, found: dict[TopicPartition, Sequence[Any]]) -> dict[TopicPartition, Sequence[Any]]:
        """Return what a poll delivered, without records after a gap that has to be seen a second time."""
        for tp, looks in list(self._looks.items()):
            records = found.get(tp)
            try:
                reached = records[0].offset if records else self._consumer.position(tp, timeout_ms=0)
            except _GONE:
                self._forget(tp)
                continue
            if reached is not None and reached > self._next[tp] and not looks:
                found = {place: slices for place, slices in found.items() if place != tp}
                self._consumer.seek(tp, self._next[tp])
                self._looks[tp] = 1
            elif records or (reached is not None and reached > self._next[tp]):
                del self._looks[tp]
        for tp, records in found.items():
            self._next[tp] = records[-1].offset + 1
        return found

    def _forget(self, tp: TopicPartition) -> None:
        self._next.pop(tp, None)
        self._looks.pop(tp, None)
