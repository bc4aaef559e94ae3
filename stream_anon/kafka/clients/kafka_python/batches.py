"""Put many records at once into a kafka-python producer; with its public `send` alone most cost is repeated work.

`send` opens each batch, joins it to the transaction and gives the answer of the whole batch; what else fits is put in
beside it, under the producer's own lock. A client that is built otherwise gets every record by `send`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any

from kafka import KafkaProducer, TopicPartition

from stream_anon.kafka.transport import MARK, Outgoing, partition_of

_Record = tuple[bytes, bytes, list[tuple[str, bytes]] | None]
_SMALL = 65_536  # bytes of a record whose size the client need not look at


def send_all(producer: KafkaProducer, records: Sequence[Outgoing]) -> Iterator[Any]:
    """Send the records and yield a future per batch, or per record. The key decides the partition, as usual."""
    counts = {topic: len(producer.partitions_for(topic)) for topic in {topic for topic, *_ in records}}
    places: dict[TopicPartition, list[_Record]] = defaultdict(list)
    for topic, key, values, mark in records:
        marked = chain([[(MARK, mark)] if mark else None], repeat(None))
        places[TopicPartition(topic, partition_of(key, counts[topic]))] += zip(repeat(key), values, marked)
    beside = has_batches(producer)
    for place, bucket in places.items():
        at = 0
        while at < len(bucket):
            key, value, headers = bucket[at]
            yield producer.send(place.topic, value=value, key=key, headers=headers, partition=place.partition)
            at += 1
            if beside:
                at = _fill(producer, place, bucket, at)


def has_batches(producer: Any) -> bool:
    """Tell whether this client version keeps its open batches where we expect them."""
    accumulator = getattr(producer, "_accumulator", None)
    return hasattr(accumulator, "_batches") and hasattr(accumulator, "_tp_lock")


def _fill(producer: Any, place: TopicPartition, bucket: list[_Record], at: int) -> int:
    """Put records from `at` on into the open batch while there is room; return the first that was not put in."""
    accumulator, now = producer._accumulator, int(time.time() * 1000)
    with accumulator._tp_lock(place):
        waiting = accumulator._batches[place]
        if not waiting:  # it was sent already
            return at
        append = waiting[-1].records.append
        for key, value, headers in bucket[at:]:
            if headers or len(value) > _SMALL or append(now, key, value) is None:
                break
            at += 1
    return at
