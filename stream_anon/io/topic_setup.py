"""Creates topics that are missing, with settings that keep the promise; never changes one that is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka import errors as client_errors
from kafka.admin import NewTopic

from stream_anon.io.kafka_options import client_options
from stream_anon.io.kafka_topics import KafkaTopics
from stream_anon.io.transport import TopicFacts, TransportError

_FORBIDDEN = (client_errors.TopicAuthorizationFailedError, client_errors.ClusterAuthorizationFailedError)
_SETTINGS = {"cleanup.policy": "delete"}  # said aloud: a broker's own default may be compaction


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it is now, and whether it was made just now."""

    name: str
    facts: TopicFacts
    created: bool


def create_topics(
    bootstrap: str, wanted: Mapping[str, int], options: Mapping[str, Any] | None = None, replication: int = 1
) -> list[Topic]:
    """Create those of `wanted`, names with their numbers of partitions, that are missing; all of them as they are."""
    common = {"bootstrap_servers": bootstrap, **client_options(options or {})["admin"]}
    topics = KafkaTopics(common, {}, "")
    try:
        missing = [name for name in wanted if name not in set(topics.admin.list_topics())]
        _create(topics.admin, [NewTopic(n, wanted[n], replication, topic_configs=_SETTINGS) for n in missing])
        facts = {name: topics.facts(name) for name in wanted}
    except client_errors.KafkaError as error:
        raise TransportError(f"topics cannot be created: {type(error).__name__}; {_remedy(error)}") from None
    finally:
        topics.close()
    return [Topic(name, fact, name in missing) for name, fact in facts.items()]


def _create(admin: KafkaAdminClient, topics: list[NewTopic]) -> None:
    try:
        if topics:
            admin.create_topics(topics)
    except client_errors.TopicAlreadyExistsError:
        """Somebody else was quicker."""


def _remedy(error: client_errors.KafkaError) -> str:
    if isinstance(error, client_errors.InvalidReplicationFactorError):
        return "--replication may not exceed the number of brokers"
    if isinstance(error, _FORBIDDEN):
        return "allow CREATE and DESCRIBE on the topics, or let an administrator create them"
    return "check address, port and firewall; a wrong SASL password looks the same as no broker"
