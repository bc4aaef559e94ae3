"""The doctor's questions to a broker, asked through confluent-kafka."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigResource

from stream_anon.kafka.clients.confluent.errors import translated
from stream_anon.kafka.clients.confluent.options import client_options, make
from stream_anon.kafka.clients.confluent.topics import ConfluentTopics, consume
from stream_anon.kafka.transport import NotAllowedError, TopicFacts

_PATIENCE = 10.0


class ConfluentProbe:
    """A probe of one broker through confluent-kafka."""

    def __init__(self, bootstrap: str, group: str, options: Mapping[str, Any]) -> None:
        self._group = group
        self._options = {"bootstrap.servers": bootstrap, **client_options(options)}
        self._options.pop("group.instance.id", None)
        self._topics = ConfluentTopics(self._options, group, "")

    def cluster(self) -> tuple[int, str]:
        """Return the number of nodes and the cluster id."""
        with translated():
            found = self._topics.admin.describe_cluster(request_timeout=_PATIENCE).result()
            return len(found.nodes), str(found.cluster_id)

    def facts(self, topic: str) -> TopicFacts:
        """Return the facts of a topic."""
        with translated():
            return self._topics.facts(topic)

    def allowed(self, topic: str) -> Collection[str]:
        """Return the allowed operations, which the broker sends with the topic."""
        with translated():
            asked = self._topics.admin.describe_topics(
                TopicCollection([topic]), include_authorized_operations=True, request_timeout=_PATIENCE
            )
            return [operation.name for operation in asked[topic].result().authorized_operations or []]

    def group_state(self) -> str | None:
        """Return the group's state; brokers report an unknown group as dead or as not found."""
        with translated():
            try:
                asked = self._topics.admin.describe_consumer_groups(
                    [self._group], include_authorized_operations=True, request_timeout=_PATIENCE
                )
                group = asked[self._group].result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return None
                if error.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    raise NotAllowedError(f"group {self._group}", "READ") from None
                raise
        allowed = [operation.name for operation in group.authorized_operations or []]
        if allowed and "READ" not in allowed:
            raise NotAllowedError(f"group {self._group}", "READ")
        state = str(group.state.name).capitalize()
        return None if state == "Dead" else state

    def transact(self, transactional_id: str) -> None:
        """Begin and abort a transaction."""
        with translated():
            producer = make(Producer, {**self._options, "transactional.id": transactional_id})
            try:
                producer.init_transactions(_PATIENCE)
                producer.begin_transaction()
                producer.abort_transaction(_PATIENCE)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                    raise
                raise NotAllowedError(f"transactional id {transactional_id}", "WRITE") from None

    def metadata_limit(self) -> int | None:
        """Return the limit from the configuration of the first node."""
        try:
            node = self._topics.admin.describe_cluster(request_timeout=_PATIENCE).result().nodes[0]
            key = ConfigResource(ConfigResource.Type.BROKER, str(node.id))
            configs = self._topics.admin.describe_configs([key], request_timeout=_PATIENCE)[key].result()
            return int(configs["offset.metadata.max.bytes"].value)
        except (KafkaException, KeyError, IndexError, ValueError):
            return None

    def newest(self, topic: str) -> float:
        """Return the latest time among the last few records of each partition."""
        newest, reader = 0.0, self._topics.consumer
        with translated():
            for partition, (first, end) in self._topics.bounds(topic).items():
                if end > first:
                    reader.assign([TopicPartition(topic, partition, max(first, end - 5))])
                    found = [m.timestamp()[1] / 1000 for m in consume(reader, 5, 2.0) if m.error() is None]
                    newest = max([newest, *found])
        return newest

    def ends(self, topic: str) -> dict[int, int]:
        """Ask for the bounds of the topic, over this probe's own connection."""
        with translated():
            return {number: end for number, (_, end) in self._topics.bounds(topic).items()}

    def held_back(self, topic: str) -> dict[int, int]:
        """Compare the ends that committed and uncommitted readers see."""
        with translated():
            return self._topics.held_back(topic)

    def close(self) -> None:
        """Close all connections that were opened."""
        with translated():
            self._topics.close()
