"""Whether a Kafka is fit for a worker, question by question; it creates nothing and publishes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as client_errors
from kafka.admin import ConfigResource

from stream_anon.io.kafka_options import client_options
from stream_anon.io.kafka_topics import KafkaTopics
from stream_anon.io.transport import NotAllowedError, TransportError

_METADATA = 4_096
_PATIENCE = 15.0  # seconds for what a new broker has to make first


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer; `remedy` says what to do when it is not good."""

    question: str
    good: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Doctor:
    """Asks one broker about one group and its topics."""

    bootstrap: str
    group: str
    input: str
    output: str
    dead_letter: str | None
    options: dict[str, Any]

    def examine(self) -> Iterator[Finding]:
        """All findings, in the order in which trouble would show; nothing more once the broker does not answer."""
        chosen = client_options(self.options)
        common = {"bootstrap_servers": self.bootstrap, "bootstrap_timeout_ms": 8_000}
        try:
            admin = KafkaAdminClient(**{**common, **chosen["admin"]})
            cluster = admin.describe_cluster()
        except client_errors.KafkaError as error:
            remedy = "check address, port and firewall; a wrong SASL password looks the same as no broker"
            yield Finding("broker", False, type(error).__name__, remedy)
            return
        yield Finding("broker", True, f"{len(cluster['brokers'])} node(s), cluster {cluster['cluster_id']}")
        topics = KafkaTopics({}, {**common, **chosen["consumer"]}, self.input)
        topics._admin = admin
        asks: list[Callable[[], Finding]] = [
            lambda: self._topic(topics, "input topic", self.input, "READ"),
            lambda: self._topic(topics, "output topic", self.output, "WRITE"),
        ]
        if self.dead_letter is not None:
            dead = self.dead_letter
            asks.append(lambda: self._topic(topics, "dead-letter topic", dead, "WRITE"))
        asks += [
            lambda: self._group(admin),
            lambda: self._transactions({**common, **chosen["producer"]}),
            lambda: self._metadata(admin, cluster),
            lambda: self._clock(topics),
        ]
        for ask in asks:
            yield ask()
        topics.close()

    def _topic(self, topics: KafkaTopics, question: str, name: str, operation: str) -> Finding:
        try:
            facts = topics.facts(name)
        except NotAllowedError as error:
            lacking = operation if error.operation == "DESCRIBE" else error.operation  # which includes DESCRIBE
            return _forbidden(question, lacking, f"topic {name}")
        except (TransportError, client_errors.KafkaError):
            return Finding(
                question, False, f"{name} is not there", f"create it: kafka-topics.sh --create --topic {name}"
            )
        if operation == "WRITE" and question == "output topic" and "compact" in facts.cleanup_policy:
            remedy = "set cleanup.policy=delete: compaction keeps one record per group"
            return Finding(question, False, f"{name} is compacted", remedy)
        allowed = next(t for t in topics.admin.describe_topics([name]))["authorized_operations"] or []
        if allowed and operation not in allowed:
            return _forbidden(question, operation, f"topic {name}")
        return Finding(question, True, f"{name}, {facts.partitions} partition(s), {facts.cleanup_policy}")

    def _group(self, admin: Any) -> Finding:
        """A broker that is new takes some seconds to make the topic in which groups are kept."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                found = admin.describe_groups([self.group], include_authorized_operations=True)
                break
            except client_errors.GroupIdNotFoundError:
                return Finding("group", True, f"{self.group}, not used yet")
            except client_errors.KafkaError as error:
                if isinstance(error, client_errors.GroupAuthorizationFailedError):
                    return _forbidden("group", "READ", f"group {self.group}")
                if not getattr(error, "retriable", False):
                    return Finding("group", False, type(error).__name__, "look at the broker's log and ask again")
                if time.monotonic() > until:
                    return Finding("group", False, type(error).__name__, "wait for the group coordinator and ask again")
                time.sleep(0.5)
        state = found[self.group]
        allowed = state["authorized_operations"] or []
        if allowed and "READ" not in allowed:
            return _forbidden("group", "READ", f"group {self.group}")
        known = str(state.get("group_state") or "known")
        return Finding("group", True, f"{self.group}, {'not used yet' if known == 'Dead' else known}")

    def _transactions(self, options: dict[str, Any]) -> Finding:
        name = f"stream-anon-{self.group}-doctor"
        try:
            producer = KafkaProducer(**{**options, "transactional_id": name, "max_block_ms": 10_000})
            began = time.monotonic()
            producer.init_transactions()
            producer.begin_transaction()
            producer.abort_transaction()
            producer.close(timeout=1)
        except client_errors.TransactionalIdAuthorizationFailedError:
            return _forbidden("transactions", "WRITE", f"transactional ids that begin with stream-anon-{self.group}-")
        except client_errors.KafkaError as error:
            return Finding("transactions", False, type(error).__name__, "look at the broker's log and ask again")
        return Finding("transactions", True, f"begun and aborted in {(time.monotonic() - began) * 1000:.0f} ms")

    def _metadata(self, admin: Any, cluster: dict[str, Any]) -> Finding:
        node = str(cluster["brokers"][0]["broker_id"])
        try:
            configs = admin.describe_configs([ConfigResource("BROKER", node)], config_filter="all")
            limit = int(next(iter(configs["broker"].values()))["offset.metadata.max.bytes"]["value"])
        except (client_errors.KafkaError, KeyError, StopIteration, ValueError):
            return Finding("metadata limit", True, f"may not be read; {_METADATA} is the default and enough")
        good = limit >= _METADATA
        return Finding("metadata limit", good, f"{limit} bytes", f"set offset.metadata.max.bytes to {_METADATA}")

    def _clock(self, topics: KafkaTopics) -> Finding:
        """The newest record of the input must not come from the future."""
        reader: KafkaConsumer = topics.consumer
        newest = 0.0
        for partition, (first, end) in topics.bounds(self.input).items():
            if end > first:
                tp = TopicPartition(self.input, partition)
                reader.assign([tp])
                reader.seek(tp, max(first, end - 5))
                for records in reader.poll(timeout_ms=500).values():
                    newest = max([newest, *(r.timestamp / 1000 for r in records)])
        if not newest:
            return Finding("clock", True, "the input is empty: nothing to compare with")
        ahead = newest - time.time()
        remedy = "set the clocks by NTP: ages in the metrics will be wrong; the delay bound does not depend on them"
        return Finding("clock", ahead < 5, f"the newest record is {-ahead:.1f} s old", remedy)


def _forbidden(question: str, operation: str, what: str) -> Finding:
    return Finding(question, False, f"no permission to {operation}", f"allow {operation} on {what}")
