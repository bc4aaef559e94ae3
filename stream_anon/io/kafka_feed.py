"""Records into a topic, for trials and demonstrations: no transaction, no key; the broker has taken each one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from kafka import KafkaProducer
from kafka import errors as client_errors

from stream_anon.io.kafka_options import client_options
from stream_anon.io.transport import TransportError

_LINGER = 20  # milliseconds: a steady trickle still goes out in batches


class KafkaFeed:
    """A producer of one topic. `taken` counts what the broker acknowledged; a failure is raised at the next call."""

    def __init__(self, bootstrap: str, topic: str, options: Mapping[str, Any]) -> None:
        self.taken = 0
        self._topic = topic
        self._failure: BaseException | None = None
        chosen = {"linger_ms": _LINGER, **client_options(options)["producer"], "acks": "all"}
        try:
            self._producer = KafkaProducer(bootstrap_servers=bootstrap, **chosen)
        except client_errors.KafkaError as error:
            raise TransportError(f"no broker answers at {bootstrap}: {type(error).__name__}") from None

    def send(self, values: Iterable[bytes]) -> None:
        """Hand records over; returns before they are taken."""
        try:
            for value in values:
                self._producer.send(self._topic, value=value).add_callback(self._took).add_errback(self._failed)
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

    def __enter__(self) -> KafkaFeed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producer.close()

    def _took(self, metadata: object) -> None:
        self.taken += 1

    def _failed(self, error: BaseException) -> None:
        self._failure = error

    def _check(self) -> None:
        if self._failure is not None:
            raise TransportError(f"{self._topic} did not take a record: {type(self._failure).__name__}")
