"""Send records to a topic through confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from stream_anon.kafka.clients.confluent.options import client_options, make
from stream_anon.kafka.feed import LINGER, not_taken, unreachable

_PATIENCE = 20.0  # seconds for the first answer of a broker


class ConfluentFeed:
    """A plain producer of one topic, for trials."""

    def __init__(self, bootstrap: str, topic: str, options: Mapping[str, Any]) -> None:
        self.taken = 0
        self._topic = topic
        self._failure: KafkaError | None = None
        chosen = {"linger.ms": LINGER, **client_options(options), "acks": "all", "bootstrap.servers": bootstrap}
        chosen.pop("group.instance.id", None)
        try:
            self._producer = make(Producer, chosen)
            found = self._producer.list_topics(topic, _PATIENCE).topics[topic]
        except KafkaException as error:
            raise unreachable(topic, error.args[0].name()) from None
        if found.error is not None:
            raise unreachable(topic, found.error.name())
        self._turn = cycle(sorted(found.partitions))

    def send(self, values: Iterable[bytes]) -> None:
        """Queue records for sending and return before the broker has taken them."""
        try:
            for value in values:
                self._hand_over(value, next(self._turn))
            self._producer.poll(0)
        except KafkaException as error:
            self._failure = error.args[0]
        self._check()

    def _hand_over(self, value: bytes, partition: int) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, partition=partition, on_delivery=self._answered)
                return
            except BufferError:
                self._producer.poll(0.05)

    def flush(self) -> None:
        """Wait until the broker has taken everything."""
        self._producer.flush()
        self._check()

    def close(self) -> None:
        """Send what is left, for a short time, and close the producer."""
        self._producer.flush(2)
        self._producer.purge()

    def _answered(self, error: KafkaError | None, message: object) -> None:
        if error is None:
            self.taken += 1
        else:
            self._failure = error

    def _check(self) -> None:
        if self._failure is not None:
            raise not_taken(self._topic, self._failure.name())
