"""A client that skips records is set back once; a gap seen twice is a gap."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka import errors as client_errors

from stream_anon.kafka.clients.kafka_python.reading import Reading

TP = TopicPartition("in", 0)


class Consumer:
    """One partition whose records stand at `offsets`; `swallow` polls move on without bringing anything."""

    def __init__(self, offsets: list[int], end: int) -> None:
        self.offsets, self.end, self.at, self.swallow, self.assigned = offsets, end, 0, 0, True

    def seek(self, tp: TopicPartition, offset: int) -> None:
        if not self.assigned:
            raise client_errors.IllegalStateError("not assigned")
        self.at = offset

    def position(self, tp: TopicPartition, timeout_ms: int) -> int:
        if not self.assigned:
            raise client_errors.IllegalStateError("not assigned")
        return self.at

    def poll(self) -> dict[TopicPartition, list[Any]]:
        found = [SimpleNamespace(offset=offset) for offset in self.offsets if self.at <= offset < self.end]
        self.at = self.end
        if self.swallow:
            self.swallow -= 1
            return {}
        return {TP: found} if found else {}


def read(reading: Reading, consumer: Consumer, polls: int) -> list[int]:
    return [r.offset for _ in range(polls) for r in reading.check(consumer.poll()).get(TP, ())]  # type: ignore[arg-type]


@pytest.fixture
def consumer() -> Consumer:
    return Consumer([3, 4, 5], 6)


def test_records_that_were_skipped_are_read_again(consumer: Consumer) -> None:
    reading = Reading(consumer)
    reading.begin(TP, 3)
    consumer.swallow = 1
    assert read(reading, consumer, 4) == [3, 4, 5]


def test_a_gap_is_believed_the_second_time(consumer: Consumer) -> None:
    reading = Reading(consumer)
    reading.begin(TP, 1)
    assert read(reading, consumer, 1) == []
    assert read(reading, consumer, 3) == [3, 4, 5]


def test_nothing_but_markers(consumer: Consumer) -> None:
    consumer.offsets = []
    reading = Reading(consumer)
    reading.begin(TP, 1)
    assert read(reading, consumer, 3) == []
    assert consumer.at == 6


def test_after_an_error_it_goes_on_behind_the_last_record_brought(consumer: Consumer) -> None:
    reading = Reading(consumer)
    reading.begin(TP, 3)
    consumer.end = 5
    assert read(reading, consumer, 1) == [3, 4]
    consumer.end = 6
    consumer.poll()  # thrown away
    reading.again([TP])
    assert read(reading, consumer, 2) == [5]


def test_a_partition_that_left_is_forgotten(consumer: Consumer) -> None:
    reading = Reading(consumer)
    reading.begin(TP, 3)
    consumer.assigned = False
    assert reading.check({}) == {}
    reading.again([TP])
    consumer.assigned = True
    reading.again([TP])
    assert consumer.at == 3
