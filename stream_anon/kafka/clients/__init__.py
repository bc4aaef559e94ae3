"""Choose the Kafka client: the one the policy names, else the faster of those installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.doctor import BrokerProbe
from stream_anon.kafka.feed import Feed
from stream_anon.kafka.transport import Transport

_PACKAGES = {"confluent-kafka": ("confluent_kafka", "fast"), "kafka-python": ("kafka", "kafka")}
"""The package to import and the extra that brings it, the faster first."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client library: its transport, broker probe, topic creation, and a feed of records for trials."""

    name: str
    transport: Callable[..., Transport]
    probe: Callable[[str, str, Mapping[str, Any]], BrokerProbe]
    create_topics: Callable[..., list[str]]
    feed: Callable[[str, str, Mapping[str, Any]], Feed]


def installed() -> list[str]:
    """Return the clients that can be used, the faster first."""
    return [name for name, (package, _) in _PACKAGES.items() if find_spec(package) is not None]


def client_of(wanted: str = "auto") -> Client:
    """Return the client of that name; if it is not installed, raise with the command that installs it."""
    found = installed()
    name = next(iter(found), "kafka-python") if wanted == "auto" else wanted
    if name not in found:
        raise StreamAnonError(f"this needs the client {name}: pip install 'stream-anon[{_PACKAGES[name][1]}]'")
    if name == "confluent-kafka":
        from stream_anon.kafka.clients.confluent.feed import ConfluentFeed
        from stream_anon.kafka.clients.confluent.probe import ConfluentProbe
        from stream_anon.kafka.clients.confluent.topics import create_topics as create_with_confluent
        from stream_anon.kafka.clients.confluent.transport import ConfluentTransport

        return Client(name, ConfluentTransport, ConfluentProbe, create_with_confluent, ConfluentFeed)
    from stream_anon.kafka.clients.kafka_python.feed import KafkaFeed
    from stream_anon.kafka.clients.kafka_python.probe import KafkaProbe
    from stream_anon.kafka.clients.kafka_python.topics import create_topics
    from stream_anon.kafka.clients.kafka_python.transport import KafkaTransport

    return Client(name, KafkaTransport, KafkaProbe, create_topics, KafkaFeed)
