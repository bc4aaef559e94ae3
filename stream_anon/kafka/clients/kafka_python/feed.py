"""Send records to a topic through kafka-python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from typing import Any

from kafka import KafkaProducer
from kafka import errors as client_errors

from stream_anon.kafka.clients.kafka_python.options import client_options
from stream_anon.kafka.feed import LINGER, not_taken, unreachable


class KafkaFeed:
    """A plain producer of one topic, for trials."""

    def __init__(self, bootstrap: str, topic: str, options: Mapping[str, Any]) -> None:
        self.taken = 0
        self._topic = topic
        self._failure: BaseException | None = None
        chosen = {"linger_ms": LINGER, **client_options(options)["producer"], "acks": "all"}
        try:
            self._producer = KafkaProducer(bootstrap_servers=bootstrap, **chosen)
            self._turn = cycle(sorted(self._producer.partitions_for(topic)))
        except client_errors.KafkaError as error:
            raise unreachable(topic, type(error).__name__) from None

    def send(self, values: Iterable[bytes]) -> None:
        """Queue records for sending and return before the broker has taken them."""
        try:
            for value in values:
                sent = self._producer.send(self._topic, value=value, partition=next(self._turn))
                sent.add_callback(self._took).add_errback(self._failed)
        except client_errors.KafkaError as error:
            self._failure = error
        self._check()

    def flush(self) -> None:
        """Wait until the broker has taken everything."""
        try:
            self._producer.flush()
        except client_errors.KafkaError as error:
            self._failure = error
        self._check()

    def close(self) -> None:
        """Send what is left, for a short time, and close the producer."""
        self._producer.close(timeout=2)

    def _took(self, metadata: object) -> None:
        self.taken += 1

    def _failed(self, error: BaseException) -> None:
        self._failure = error

    def _check(self) -> None:
        if self._failure is not None:
            raise not_taken(self._topic, type(self._failure).__name__)
