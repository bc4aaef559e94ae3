"""The doctor's questions to a broker, asked through kafka-python."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka import errors as client_errors
from kafka.admin import ConfigResource, OffsetSpec

from stream_anon.kafka.clients.kafka_python.errors import translated
from stream_anon.kafka.clients.kafka_python.options import client_options
from stream_anon.kafka.clients.kafka_python.topics import KafkaTopics
from stream_anon.kafka.transport import NotAllowedError, TopicFacts


class KafkaProbe:
    """A probe of one broker through kafka-python."""

    def __init__(self, bootstrap: str, group: str, options: Mapping[str, Any]) -> None:
        self._group = group
        common = {"bootstrap_servers": bootstrap, "bootstrap_timeout_ms": 8_000}
        chosen = client_options(options)
        self._topics = KafkaTopics({**common, **chosen["admin"]}, {**common, **chosen["consumer"]}, group, "")
        self._producer = {**common, **chosen["producer"], "max_block_ms": 10_000}

    def cluster(self) -> tuple[int, str]:
        """Return the number of nodes and the cluster id."""
        with translated():
            found = self._topics.admin.describe_cluster()
            return len(found["brokers"]), str(found["cluster_id"])

    def facts(self, topic: str) -> TopicFacts:
        """Return the facts of a topic."""
        with translated():
            return self._topics.facts(topic)

    def allowed(self, topic: str) -> Collection[str]:
        """Return the allowed operations, which the broker sends with the topic."""
        with translated():
            return next(t for t in self._topics.admin.describe_topics([topic]))["authorized_operations"] or []

    def group_state(self) -> str | None:
        """Return the group's state; brokers report an unknown group as dead or as not found."""
        with translated():
            try:
                found = self._topics.admin.describe_groups([self._group], include_authorized_operations=True)
            except client_errors.GroupIdNotFoundError:
                return None
            except client_errors.GroupAuthorizationFailedError:
                raise NotAllowedError(f"group {self._group}", "READ") from None
        group = found[self._group]
        allowed = group["authorized_operations"] or []
        if allowed and "READ" not in allowed:
            raise NotAllowedError(f"group {self._group}", "READ")
        state = str(group.get("group_state") or "known")
        return None if state == "Dead" else state

    def transact(self, transactional_id: str) -> None:
        """Begin and abort a transaction."""
        with translated():
            producer = KafkaProducer(**{**self._producer, "transactional_id": transactional_id})
            try:
                producer.init_transactions()
                producer.begin_transaction()
                producer.abort_transaction()
            except client_errors.TransactionalIdAuthorizationFailedError:
                raise NotAllowedError(f"transactional id {transactional_id}", "WRITE") from None
            finally:
                producer.close(timeout=1)

    def metadata_limit(self) -> int | None:
        """Return the limit from the configuration of the first node."""
        try:
            node = str(self._topics.admin.describe_cluster()["brokers"][0]["broker_id"])
            configs = self._topics.admin.describe_configs([ConfigResource("BROKER", node)], config_filter="all")
            return int(next(iter(configs["broker"].values()))["offset.metadata.max.bytes"]["value"])
        except (client_errors.KafkaError, KeyError, StopIteration, ValueError):
            return None

    def newest(self, topic: str) -> float:
        """Return the latest time among the last few records of each partition."""
        newest, reader = 0.0, self._topics.consumer
        with translated():
            for partition, (first, end) in self._topics.bounds(topic).items():
                if end > first:
                    tp = TopicPartition(topic, partition)
                    reader.assign([tp])
                    reader.seek(tp, max(first, end - 5))
                    for records in reader.poll(timeout_ms=500).values():
                        newest = max([newest, *(r.timestamp / 1000 for r in records)])
        return newest

    def ends(self, topic: str) -> dict[int, int]:
        """Ask for the bounds of the topic, over this probe's own connection."""
        with translated():
            return {number: end for number, (_, end) in self._topics.bounds(topic).items()}

    def held_back(self, topic: str) -> dict[int, int]:
        """Compare the ends that committed and uncommitted readers see."""
        with translated():
            stable = {TopicPartition(topic, number): end for number, (_, end) in self._topics.bounds(topic).items()}
            ends = self._topics.admin.list_partition_offsets(dict.fromkeys(stable, OffsetSpec.LATEST))
            return {tp.partition: at for tp, at in stable.items() if ends[tp].offset > at}

    def close(self) -> None:
        """Close all connections that were opened."""
        with translated():
            self._topics.close()
