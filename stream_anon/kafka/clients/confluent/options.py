"""Client options by their Kafka names, spelled for confluent-kafka, which reports an option it does not know."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from stream_anon.kafka.option_names import dotted, unknown

CONSUMER = {
    "session.timeout.ms": 8_000,
    "max.poll.interval.ms": 60_000,
    "heartbeat.interval.ms": 500,  # a member hears of a rebalance by its heartbeat, and all wait for the last
    "topic.metadata.refresh.interval.ms": 30_000,  # a partition added is seen within half a minute
    "fetch.wait.max.ms": 50,
    "queued.min.messages": 20_000,
    "fetch.queue.backoff.ms": 10,  # with the default a reader of 20,000 in less than a second runs dry
}
"""What a worker's consumer is made with, unless the policy says otherwise."""

PRODUCER = {
    "transaction.timeout.ms": 12_000,
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "retry.backoff.ms": 5,  # a transaction begun right after another waits this long; the default 100 costs 100 ms each
    "retry.backoff.max.ms": 20,
    "message.max.bytes": 100_000_000,  # the topic decides, and is asked before a group is announced
    "queue.buffering.max.messages": 1_000_000,
}
"""What its producer is made with, likewise."""

_OTHER_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    "ssl.cafile": "ssl.ca.location",
    "ssl.certfile": "ssl.certificate.location",
    "ssl.keyfile": "ssl.key.location",
    "ssl.password": "ssl.key.password",
    "sasl.plain.username": "sasl.username",
    "sasl.plain.password": "sasl.password",
}
_log = logging.getLogger("kafka.librdkafka")  # repeated by the second while a broker is away: told as a client's
_CRITICAL = 2  # by syslog: below that it repeats what the failing call tells, and may quote what it worked on
_Client = TypeVar("_Client")


def client_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as this client spells them; each of its parts ignores those of another role.

    >>> client_options({"fetch.max.wait.ms": 100})
    {'fetch.wait.max.ms': 100}
    """
    return {_OTHER_NAMES.get(name, name): value for name, value in dotted(options).items()}


def make(client: Callable[[dict[str, Any]], _Client], options: Mapping[str, Any]) -> _Client:
    """Make a client that logs through our logs; if it refuses an option, raise with its name but not its value."""
    talk = {"logger": _log, "error_cb": _log_error}
    try:
        return client({"log_level": _CRITICAL, **options, **talk})
    except KafkaException as error:
        refused = [name for name in options if f'"{name}"' in str(error)]
        if not refused:
            raise
        raise unknown(refused[0], _OTHER_NAMES) from None


def _log_error(error: KafkaError) -> None:
    """Log a client error; the client retries, and what stays broken fails in the next call."""
    _log.error("client error", extra={"error": error.name()})
