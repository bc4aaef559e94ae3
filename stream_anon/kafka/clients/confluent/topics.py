"""Facts about topics, and single records by offset, through confluent-kafka; joins no group and commits nothing."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

from stream_anon.kafka.clients.confluent.options import client_options, make
from stream_anon.kafka.new_topics import FORBIDDEN, NO_ANSWER, TOO_MANY_COPIES, await_known, not_created, settings_of
from stream_anon.kafka.offset_ranges import offset_ranges
from stream_anon.kafka.transport import (
    MARK,
    AbortableError,
    GroupInUseError,
    NotAllowedError,
    Ref,
    Stored,
    TopicFacts,
    TransportError,
)

_PATIENCE = 20.0  # seconds to wait for one answer, or for one range of records
_FETCH_WAIT = 10  # milliseconds until the broker says that a log has ended; 500 by default, for each partition
_HIDDEN = 1.0  # seconds to wait for records that an open transaction hides, before the loop goes on and asks again
_KEPT = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)


class ConfluentTopics:
    """An admin client and two plain consumers, created when first needed: one of committed records, one of all."""

    def __init__(self, options: Mapping[str, Any], group: str, topic: str) -> None:
        self._options, self._group, self._topic = options, group, topic
        self._admin: AdminClient | None = None
        self._consumer: Consumer | None = None
        self._curious: Consumer | None = None

    @property
    def admin(self) -> AdminClient:
        """The admin client, created when first needed."""
        if self._admin is None:
            self._admin = make(AdminClient, {k: v for k, v in self._options.items() if k != "group.instance.id"})
        return self._admin

    @property
    def consumer(self) -> Consumer:
        """The manually assigned consumer; the client requires a group name, but joins none without subscribing."""
        if self._consumer is None:
            self._consumer = self._plain("read_committed")
        return self._consumer

    @property
    def curious(self) -> Consumer:
        """The consumer that sees uncommitted records too, and offsets that an open transaction will replace."""
        if self._curious is None:
            self._curious = self._plain("read_uncommitted")
        return self._curious

    def _plain(self, level: str) -> Consumer:
        own = {"group.id": self._group, "isolation.level": level, "enable.auto.commit": False}
        own |= {"auto.offset.reset": "error", "enable.partition.eof": True, "fetch.wait.max.ms": _FETCH_WAIT}
        options = {k: v for k, v in self._options.items() if k != "group.instance.id"}
        return make(Consumer, {**options, **own})

    def committed(self, partitions: Iterable[int]) -> list[TopicPartition]:
        """Return what is committed for partitions, settled or not."""
        found = self.curious.committed([TopicPartition(self._topic, number) for number in partitions], _PATIENCE)
        for tp in found:
            if tp.error is not None:
                raise KafkaException(tp.error)
        return list(found)

    def read(self, topic: str, since: Mapping[int, int], committed: bool) -> Iterator[Stored]:
        """Yield the records of some partitions, all of them read at once."""
        partitions = [TopicPartition(topic, number) for number in since]
        first = self._offsets(partitions, OffsetSpec.earliest())
        ends = self._offsets(partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        begin = {number: max(first[number], at) for number, at in since.items()}
        begin = {number: at for number, at in begin.items() if at < ends[number]}
        reader = self.consumer if committed else self.curious
        yield from _read_on(reader, topic, begin, ends, _HIDDEN if committed else _PATIENCE)

    def facts(self, topic: str) -> TopicFacts:
        """Return the facts of a topic, asked of the broker each time: it may have been recreated."""
        found = self._describe(topic)
        key = ConfigResource(ConfigResource.Type.TOPIC, topic)
        with _permission_named(topic, "DESCRIBE_CONFIGS"):
            configs = self.admin.describe_configs([key], request_timeout=_PATIENCE)[key].result()
        cluster = self.admin.describe_cluster(request_timeout=_PATIENCE).result()
        high, low = found.topic_id.get_most_significant_bits(), found.topic_id.get_least_significant_bits()
        return TopicFacts(
            str(UUID(int=(high % 2**64 << 64) + low % 2**64)),
            str(cluster.cluster_id),
            len(found.partitions),
            configs["cleanup.policy"].value,
            int(configs["max.message.bytes"].value),
        )

    def _describe(self, topic: str) -> Any:
        try:
            with _permission_named(topic, "DESCRIBE"):
                asked = self.admin.describe_topics(TopicCollection([topic]), request_timeout=_PATIENCE)
                return asked[topic].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            raise TransportError(f"there is no topic {topic!r}: create it first") from None

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the first and end offset of each partition."""
        partitions = [TopicPartition(topic, p) for p in range(len(self._describe(topic).partitions))]
        first, end = self._offsets(partitions, OffsetSpec.earliest()), self._offsets(partitions, OffsetSpec.latest())
        return {number: (first[number], end[number]) for number in first}

    def offsets_at(self, topic: str, when: float) -> dict[int, int]:
        """Return per partition the first offset with a record at or after a time, its end if there is none."""
        ends = {number: end for number, (_, end) in self.bounds(topic).items()}
        partitions = [TopicPartition(topic, number) for number in ends]
        found = self._offsets(partitions, OffsetSpec.for_timestamp(int(when * 1000)))
        return ends | {number: min(at, ends[number]) for number, at in found.items() if at >= 0}

    def held_back(self, topic: str) -> dict[int, int]:
        """Return the partitions with records behind an open transaction, and the offset where that begins."""
        stable = {number: end for number, (_, end) in self.bounds(topic).items()}
        partitions = [TopicPartition(topic, number) for number in stable]
        ends = self._offsets(partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
        return {number: at for number, at in stable.items() if ends[number] > at}

    def _offsets(
        self,
        partitions: list[TopicPartition],
        spec: OffsetSpec,
        level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    ) -> dict[int, int]:
        asked = self.admin.list_offsets(
            dict.fromkeys(partitions, spec), isolation_level=level, request_timeout=_PATIENCE
        )
        return {tp.partition: future.result().offset for tp, future in asked.items()}

    def fetch(self, refs: Iterable[Ref]) -> dict[Ref, bytes | None]:
        """Read records by offset, range by range; an offset passed without a record no longer exists."""
        wanted = sorted(set(refs))
        bounds = self.bounds(self._topic) if wanted else {}
        found: dict[Ref, bytes | None] = {}
        for partition in sorted({p for p, _ in wanted}):
            first, end = bounds[partition]
            for run in offset_ranges([o for p, o in wanted if p == partition and first <= o < end]):
                self._read(partition, run, end, found)
        return found

    def _read(self, partition: int, offsets: list[int], end: int, found: dict[Ref, bytes | None]) -> None:
        wanted, at = set(offsets), offsets[0]
        self.consumer.assign([TopicPartition(self._topic, partition, at)])
        until = time.monotonic() + _PATIENCE
        while at <= offsets[-1]:
            for message in consume(self.consumer, 2_000, 0.2):
                error, offset = message.error(), message.offset() or 0
                if message.partition() != partition or offset < offsets[0]:
                    continue
                if error is None:
                    if offset in wanted:
                        found[partition, offset] = message.value()
                    at = max(at, offset + 1)
                elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                    return
                elif error.code() == KafkaError._PARTITION_EOF and offset >= end:
                    at = offset
            if time.monotonic() > until:
                raise TransportError("records of announced groups could not be read in time")

    def commit(self, offsets: list[TopicPartition]) -> None:
        """Commit as a consumer that is not a member of the group."""
        try:
            for done in self.consumer.commit(offsets=offsets, asynchronous=False):
                if done.error is not None:
                    raise KafkaException(done.error)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID:
                raise GroupInUseError from None
            raise

    def close(self) -> None:
        """Close what was opened; the admin client ends with its last reference."""
        for consumer in filter(None, (self._consumer, self._curious)):
            consumer.close()
        self._consumer = self._curious = self._admin = None


def _read_on(
    reader: Consumer, topic: str, begin: Mapping[int, int], ends: Mapping[int, int], patience: float
) -> Iterator[Stored]:
    """Yield the records of partitions up to their ends; give up if nothing comes for so long."""
    at = dict(begin)
    reader.assign([TopicPartition(topic, number, offset) for number, offset in begin.items()])
    until = time.monotonic() + patience
    while any(at[number] < ends[number] for number in at):
        if time.monotonic() > until:
            raise AbortableError("the records of a topic could not be read to the end")
        for message in consume(reader, 2_000, 0.1):
            error, number, offset = message.error(), message.partition(), message.offset() or 0
            if message.topic() != topic or number not in at or offset < begin[number]:
                continue
            if error is None:
                mark = [value for name, value in message.headers() or () if name == MARK]
                if offset < ends[number]:
                    yield Stored(number, offset, message.key(), message.value(), *mark[:1])
                at[number] = max(at[number], offset + 1)
                until = time.monotonic() + patience
            elif error.code() == KafkaError._PARTITION_EOF:
                at[number] = max(at[number], offset)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise AbortableError("a topic lost records while they were read")


@contextmanager
def _permission_named(topic: str, operation: str) -> Iterator[None]:
    """Raise an error with the missing permission where the broker refuses an answer."""
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() not in _KEPT:
            raise
        raise NotAllowedError(f"topic {topic}", operation) from None


def consume(consumer: Consumer, limit: int, timeout: float) -> list[Message]:
    """Return the records that are there, else those that arrive by the time the first does, within `timeout`."""
    found: list[Any] = consumer.consume(limit, 0)
    if not found and timeout > 0:
        found = consumer.consume(1, timeout)
        if found and limit > 1:
            found += consumer.consume(limit - 1, 0)
    return found


def create_topics(
    bootstrap: str,
    topics: Mapping[str, int],
    options: Mapping[str, Any] | None = None,
    replication: int = 1,
    compacted: Collection[str] = (),
) -> list[str]:
    """Create the missing topics with these numbers of partitions and return their names; leave others unchanged."""
    chosen = {**client_options(options or {}), "bootstrap.servers": bootstrap}
    chosen.pop("group.instance.id", None)
    try:
        admin = make(AdminClient, chosen)
        present = admin.list_topics(timeout=_PATIENCE).topics
        missing = [name for name in topics if name not in present]
        if missing:
            new = [NewTopic(n, topics[n], replication, config=settings_of(n, compacted)) for n in missing]
            for asked in admin.create_topics(new, request_timeout=_PATIENCE).values():
                asked.result()
            await_known(lambda: _known(admin, missing))
    except KafkaException as error:
        raise not_created(error.args[0].name(), _remedy(error.args[0].code())) from None
    return missing


def _known(admin: AdminClient, names: list[str]) -> bool:
    """Tell whether the broker knows the topics, with a leader for each partition, or may not describe them."""
    for asked in admin.describe_topics(TopicCollection(names), request_timeout=_PATIENCE).values():
        try:
            if any(part.leader is None for part in asked.result().partitions):
                return False
        except KafkaException as error:
            if error.args[0].code() not in _KEPT:
                return False
    return True


def _remedy(code: int) -> str:
    if code == KafkaError.INVALID_REPLICATION_FACTOR:
        return TOO_MANY_COPIES
    return FORBIDDEN if code in _KEPT else NO_ANSWER
