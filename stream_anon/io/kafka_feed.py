"""Records into a topic, for trials and demonstrations: no transaction, no key, each partition in its turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import cycle
from types import TracebackType
from typing import Any

from kafka import KafkaProducer
from kafka import errors as client_errors

from stream_anon.io.kafka_options import client_options
from stream_anon.io.transport import TransportError

_LINGER = 20  # milliseconds: a steady trickle still goes out in batches
_REMEDY = "no broker answers, or there is no such topic: stream-anon doctor tells which"


class KafkaFeed:
    """A producer of one topic. `taken` counts what the broker acknowledged; a failure is raised at the next call."""

    def __init__(self, bootstrap: str, topic: str, options: Mapping[str, Any]) -> None:
        self.taken = 0
        self._topic = topic
        self._failure: BaseException | None = None
        chosen = {"linger_ms": _LINGER, **client_options(options)["producer"], "acks": "all"}
        try:
            self._producer = KafkaProducer(bootstrap_servers=bootstrap, **chosen)
            self._turn = cycle(sorted(self._producer.partitions_for(topic)))
        except client_errors.KafkaError as error:
            raise TransportError(f"{topic} cannot be written to: {type(error).__name__}; {_REMEDY}") from None

    def send(self, values: Iterable[bytes]) -> None:
        """Hand records over; returns before they are taken."""
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
        """Send what is left, for a moment, and leave."""
        self._producer.close(timeout=2)

    def __enter__(self) -> KafkaFeed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _took(self, metadata: object) -> None:
        self.taken += 1

    def _failed(self, error: BaseException) -> None:
        self._failure = error

    def _check(self) -> None:
        if self._failure is not None:
            raise TransportError(f"{self._topic} did not take a record: {type(self._failure).__name__}")
