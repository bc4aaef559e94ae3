"""Facts about topics, and single records by offset, through kafka-python; joins no group and commits nothing."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka import errors as client_errors
from kafka.admin import ConfigResource, NewTopic

from stream_anon.kafka.clients.kafka_python.options import client_options
from stream_anon.kafka.new_topics import FORBIDDEN, NO_ANSWER, TOO_MANY_COPIES, await_known, not_created, settings_of
from stream_anon.kafka.offset_ranges import offset_ranges
from stream_anon.kafka.transport import (
    MARK,
    AbortableError,
    Committed,
    NotAllowedError,
    Ref,
    Stored,
    TopicFacts,
    TransportError,
)

_PATIENCE = 20.0  # seconds to wait for one range of records
_FETCH_WAIT = 10  # milliseconds until the broker says that a log has ended; questions behind it wait as long
_HIDDEN = 1.0  # seconds to wait for records that an open transaction hides, before the loop goes on and asks again
_OPTIONS: dict[str, Any] = {
    "request_timeout_ms": 10_000
}  # 30 seconds by default until a lost answer is asked for again


class KafkaTopics:
    """An admin client and two plain consumers, created when first needed: one of committed records, one of all."""

    def __init__(self, admin: Mapping[str, Any], consumer: Mapping[str, Any], group: str, topic: str) -> None:
        self._admin_options, self._consumer_options = {**_OPTIONS, **admin}, {**_OPTIONS, **consumer}
        self._group, self._topic = group, topic
        self._admin: Any = None
        self._consumer: Any = None
        self._curious: Any = None

    @property
    def admin(self) -> Any:
        """The admin client, created when first needed."""
        if self._admin is None:
            self._admin = KafkaAdminClient(**self._admin_options)
        return self._admin

    @property
    def consumer(self) -> Any:
        """The consumer outside the group."""
        if self._consumer is None:
            self._consumer = self._plain(None, "read_committed")
        return self._consumer

    @property
    def curious(self) -> Any:
        """The consumer that sees uncommitted records too; it can ask for the group's offsets, and never joins."""
        if self._curious is None:
            self._curious = self._plain(self._group, "read_uncommitted")
        return self._curious

    def _plain(self, group: str | None, level: str) -> Any:
        own: dict[str, Any] = {"group_id": group, "group_instance_id": None, "isolation_level": level}
        own |= {"enable_auto_commit": False, "auto_offset_reset": "none", "fetch_max_wait_ms": _FETCH_WAIT}
        return KafkaConsumer(**{**self._consumer_options, **own})

    def glance(self, partitions: Collection[int]) -> dict[int, Committed]:
        """Return what is committed for partitions, settled or not."""
        wanted = [TopicPartition(self._topic, number) for number in partitions]
        coordinator = self.curious._coordinator
        coordinator._offset_fetch_futures.clear()  # an answer that nobody waited for is an old one
        try:
            found = coordinator.fetch_committed_offsets(wanted, timeout_ms=int(_PATIENCE * 1000))
        except client_errors.KafkaTimeoutError:
            raise AbortableError("the group's offsets could not be read in time") from None
        return {tp.partition: Committed(at.offset, at.metadata or "") for tp, at in found.items() if at.offset >= 0}

    def read(self, topic: str, since: Mapping[int, int], committed: bool) -> Iterator[Stored]:
        """Yield the records of some partitions, all of them read at once."""
        bounds = self._bounds(self.curious, [TopicPartition(topic, number) for number in since])
        begin = {number: max(bounds[number][0], at) for number, at in since.items()}
        ends = {TopicPartition(topic, number): end for number, (_, end) in bounds.items() if begin[number] < end}
        reader = self.consumer if committed else self.curious
        yield from _read_on(reader, begin, ends, _HIDDEN if committed else _PATIENCE)

    def facts(self, topic: str) -> TopicFacts:
        """Return the facts of a topic, asked of the broker each time: it may have been recreated."""
        found = self.admin.describe_topics([topic])[0]
        if found["error_code"] == client_errors.TopicAuthorizationFailedError.errno:
            raise NotAllowedError(f"topic {topic}", "DESCRIBE")
        if found["error_code"] != 0:
            raise TransportError(f"there is no topic {topic!r}: create it first")
        configs = self.admin.describe_configs([ConfigResource("TOPIC", topic)], config_filter="all")["topic"][topic]
        if "cleanup.policy" not in configs:  # the client leaves out what the broker refused to report
            raise NotAllowedError(f"topic {topic}", "DESCRIBE_CONFIGS")
        return TopicFacts(
            str(found["topic_id"]),
            str(self.admin.describe_cluster()["cluster_id"]),
            len(found["partitions"]),
            configs["cleanup.policy"]["value"],
            int(configs["max.message.bytes"]["value"]),
        )

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the first and end offset of each partition, of committed records."""
        count = len(next(t for t in self.admin.describe_topics([topic]) if t["name"] == topic)["partitions"])
        return self._bounds(self.consumer, [TopicPartition(topic, p) for p in range(count)])

    def _bounds(self, reader: Any, partitions: list[TopicPartition]) -> dict[int, tuple[int, int]]:
        try:
            first, end = reader.beginning_offsets(partitions), reader.end_offsets(partitions)
        except KeyError:  # the client leaves out what has no leader, and then looks for it
            raise AbortableError("a partition has no leader") from None
        return {tp.partition: (first[tp], end[tp]) for tp in partitions}

    def offsets_at(self, topic: str, when: float) -> dict[int, int]:
        """Return per partition the first offset with a record at or after a time, its end if there is none."""
        ends = {p: end for p, (_, end) in self.bounds(topic).items()}
        wanted = {TopicPartition(topic, p): int(when * 1000) for p in ends}
        found = self.consumer.offsets_for_times(wanted)
        return ends | {tp.partition: min(at.offset, ends[tp.partition]) for tp, at in found.items() if at is not None}

    def fetch(self, refs: Iterable[Ref]) -> dict[Ref, bytes | None]:
        """Read records by offset, range by range; an offset passed without a record no longer exists."""
        wanted: dict[int, list[int]] = defaultdict(list)
        for partition, offset in sorted(set(refs)):
            wanted[partition].append(offset)
        found: dict[Ref, bytes | None] = {}
        for partition, offsets in wanted.items():
            tp = TopicPartition(self._topic, partition)
            first = self.consumer.beginning_offsets([tp])[tp]
            end = self.consumer.end_offsets([tp])[tp]
            present = [o for o in offsets if first <= o < end]
            for run in offset_ranges(present):
                self._read(tp, run, end, found)
        return found

    def _read(self, tp: TopicPartition, offsets: list[int], end: int, found: dict[Ref, bytes | None]) -> None:
        wanted = set(offsets)
        self.consumer.assign([tp])
        self.consumer.seek(tp, offsets[0])
        until = time.monotonic() + _PATIENCE
        while (self.consumer.position(tp) or 0) <= offsets[-1]:
            for records in self.consumer.poll(timeout_ms=200, max_records=2_000).values():
                found.update({(tp.partition, r.offset): r.value for r in records if r.offset in wanted})
            if (self.consumer.position(tp) or 0) >= end:
                break
            if time.monotonic() > until:
                raise TransportError("records of announced groups could not be read in time")

    def close(self) -> None:
        """Close all connections that were opened."""
        for consumer in filter(None, (self._consumer, self._curious)):
            consumer.close(autocommit=False)
        if self._admin is not None:
            self._admin.close()


def _read_on(
    reader: Any, begin: Mapping[int, int], ends: Mapping[TopicPartition, int], patience: float
) -> Iterator[Stored]:
    """Yield the records of partitions up to their ends; give up if nothing comes for so long."""
    if not ends:
        return
    reader.assign(list(ends))
    at = {tp: begin[tp.partition] for tp in ends}
    for tp, offset in at.items():
        reader.seek(tp, offset)
    until = time.monotonic() + patience
    while any(at[tp] < end for tp, end in ends.items()):
        if time.monotonic() > until:
            raise AbortableError("the records of a topic could not be read to the end")
        try:
            found = reader.poll(timeout_ms=100, max_records=2_000)
        except client_errors.OffsetOutOfRangeError:
            raise AbortableError("a topic lost records while they were read") from None
        for tp, records in found.items():
            for r in records:
                if r.offset < ends[tp]:
                    mark = [value for name, value in r.headers if name == MARK]
                    yield Stored(tp.partition, r.offset, r.key, r.value, *mark[:1])
        for tp in ends:
            if (reached := reader.position(tp) or 0) > at[tp]:
                at[tp], until = reached, time.monotonic() + patience


def create_topics(
    bootstrap: str,
    topics: Mapping[str, int],
    options: Mapping[str, Any] | None = None,
    replication: int = 1,
    compacted: Collection[str] = (),
) -> list[str]:
    """Create the missing topics with these numbers of partitions and return their names; leave others unchanged."""
    try:
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap, **client_options(options or {})["admin"])) as admin:
            missing = [name for name in topics if name not in set(admin.list_topics())]
            if missing:
                admin.create_topics(
                    [NewTopic(n, topics[n], replication, topic_configs=settings_of(n, compacted)) for n in missing]
                )
                await_topics(admin, missing)
    except client_errors.KafkaError as error:
        raise not_created(type(error).__name__, _remedy(error)) from None
    return missing


def await_topics(admin: KafkaAdminClient, names: Collection[str]) -> None:
    """Wait until new topics can be used; do not wait for one that may not be described."""
    unknown = {client_errors.UnknownTopicOrPartitionError.errno, client_errors.LeaderNotAvailableError.errno}

    def known() -> bool:
        try:
            found = admin.describe_topics(list(names))
        except client_errors.KafkaError:  # they are created: whatever stands in the way now may pass
            return False
        codes = {part["error_code"] for topic in found for part in (topic, *topic["partitions"])}
        return len(found) == len(names) and not codes & unknown

    await_known(known)


def _remedy(error: client_errors.KafkaError) -> str:
    if isinstance(error, client_errors.InvalidReplicationFactorError):
        return TOO_MANY_COPIES
    return FORBIDDEN if isinstance(error, client_errors.AuthorizationError) else NO_ANSWER
