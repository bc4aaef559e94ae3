"""The two ends of a trial on Kafka: a plain producer and a plain committed reader; no part of a worker."""

from __future__ import annotations

from collections.abc import Sequence

from kafka import KafkaConsumer, TopicPartition

from stream_anon.kafka.clients.kafka_python.feed import KafkaFeed


class Ends:
    """A producer that writes to the input in turns over its partitions, and a reader of the whole output."""

    def __init__(self, bootstrap: str, source: str, target: str) -> None:
        self._feed = KafkaFeed(bootstrap, source, {"linger.ms": 5})
        self._reader = KafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
        )
        self._places = [TopicPartition(target, p) for p in sorted(self._reader.partitions_for_topic(target))]
        self._reader.assign(self._places)
        self._reader.seek_to_beginning(*self._places)

    def send(self, values: Sequence[bytes]) -> None:
        """Write records, one partition after the other; whether they arrived is seen at the other end."""
        self._feed.send(values)

    def read(self, timeout: float) -> list[bytes]:
        """Return what became visible since the last call, in partition order; wait `timeout` seconds for it."""
        found = self._reader.poll(timeout_ms=int(timeout * 1000), max_records=5_000)
        return [record.value for records in found.values() for record in records]

    def close(self) -> None:
        """Close the producer and the reader."""
        self._feed.close()
        self._reader.close(autocommit=False)
