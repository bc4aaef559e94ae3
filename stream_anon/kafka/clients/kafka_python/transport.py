"""The transport over kafka-python: the only module that knows this client, its traps and its errors."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka import errors as client_errors
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.structs import MemberState

from stream_anon.kafka.clients.kafka_python.batches import send_all
from stream_anon.kafka.clients.kafka_python.errors import translate, translated
from stream_anon.kafka.clients.kafka_python.joining import keep_finished_joins
from stream_anon.kafka.clients.kafka_python.options import client_options
from stream_anon.kafka.clients.kafka_python.reading import Reading
from stream_anon.kafka.clients.kafka_python.topics import KafkaTopics
from stream_anon.kafka.transport import (
    AbortableError,
    Committed,
    FencedError,
    GroupInUseError,
    Membership,
    OutcomeUnknownError,
    Outgoing,
    Pending,
    Placed,
    Polled,
    Ref,
    Slice,
    Stored,
    TopicFacts,
)
from stream_anon.kafka.watchdog import Watchdog, guarded

_CONSUMER = {"session_timeout_ms": 8_000, "max_poll_interval_ms": 60_000}
_CONSUMER |= {"heartbeat_interval_ms": 500}  # a member hears of a rebalance by its heartbeat, and all wait for the last
_CONSUMER |= {"metadata_max_age_ms": 30_000, "fetch_max_wait_ms": 50}  # a partition added is seen within half a minute
_PRODUCER = {
    "transaction_timeout_ms": 12_000,
    "linger_ms": 5,
    "batch_size": 131_072,
    "retry_backoff_ms": 5,  # a transaction begun right after another waits this long; the default 100 costs 100 ms each
    "delivery_timeout_ms": 20_000,
    "request_timeout_ms": 10_000,
    "max_block_ms": 20_000,
}
_TOO_LATE = 20.0  # seconds after which the broker has given a transaction up; this client can wait for ever
_STABLE_READ = 0.5  # seconds to wait for a predecessor's open transaction, before the loop goes on and asks again


class _Assigned(ConsumerRebalanceListener):  # type: ignore[misc]
    """A listener that pauses every new partition; it runs on the client's own thread and must not ask the broker."""

    def __init__(self) -> None:
        self.consumer: Any = None
        self._lock = threading.Lock()
        self._assigned: set[int] = set()

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Do nothing: the worker compares the assignment captured after each poll."""

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Pause at some position, so that the client neither resets nor reads before the ledger is restored."""
        for tp in assigned:
            self.consumer.pause(tp)
            self.consumer.seek(tp, 0)
            with self._lock:
                self._assigned.add(tp.partition)

    def take(self) -> frozenset[int]:
        """Return the partitions assigned since the last call."""
        with self._lock:
            taken, self._assigned = frozenset(self._assigned), set()
            return taken


class KafkaTransport:
    """A worker's consumer, transactional producer, and a second consumer outside the group for single records.

    `instance` names the worker's slot: static membership and a transactional id that fences the slot's predecessor.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        *,
        transactional_id: str,
        options: Mapping[str, Any] | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        chosen = client_options(options or {})
        common = {"bootstrap_servers": bootstrap, "reconnect_backoff_max_ms": 1_000}
        self._watchdog = watchdog or Watchdog()
        self.group, self._topic = group, topic
        self._outside = {**common, **chosen["consumer"], "group_id": group, "enable_auto_commit": False}
        self._outside.pop("group_instance_id", None)
        self._topics = KafkaTopics({**common, **chosen["admin"]}, {**common, **chosen["consumer"]}, group, topic)
        self._producer_options = {**common, **_PRODUCER, **chosen["producer"], "transactional_id": transactional_id}
        self._producer: Any = None
        self._futures: list[Any] = []
        self._largest_batch = self._producer_options["batch_size"]  # bytes that each topic written to takes
        self._beside = ThreadPoolExecutor(1, "transaction")
        self._listener = _Assigned()
        logging.getLogger("kafka.coordinator.consumer").addFilter(_quiet)
        with translated():
            self._consumer = KafkaConsumer(
                **{
                    **common,
                    "partition_assignment_strategy": (CooperativeStickyAssignor,),
                    **_CONSUMER,
                    **chosen["consumer"],
                    "group_id": group,
                    "isolation_level": "read_committed",
                    "enable_auto_commit": False,
                    "auto_offset_reset": "none",
                }
            )
        keep_finished_joins(self._consumer._coordinator)
        self._reading = Reading(self._consumer)
        self._listener.consumer = self._consumer
        with self._watchdog("subscribe"), translated():
            self._know_topic()
        self._consumer.subscribe([topic], listener=self._listener)

    def _know_topic(self) -> None:
        """Fetch the topic's metadata before subscribing: otherwise the client may see no partitions for 30 seconds."""
        if not self._consumer.partitions_for_topic(self._topic):
            self._consumer.partitions_for_topic(self._topic)

    @guarded()
    def poll(self, timeout: float, limit: int) -> Polled:
        """Poll, then capture generation, member and assignment together."""
        out_of_range: frozenset[int] = frozenset()
        found: dict[TopicPartition, Sequence[Any]] = {}
        try:
            found = self._consumer.poll(timeout_ms=max(0, int(timeout * 1000)), max_records=max(1, limit))
        except client_errors.OffsetOutOfRangeError as error:
            out_of_range = frozenset(tp.partition for tp in error.args[0])
            self._reading.again(tp for tp in self._consumer.assignment() if tp.partition not in out_of_range)
        except client_errors.KafkaError as error:
            self._reading.again(self._consumer.assignment())
            raise translate(error) from None
        found = self._reading.check(found)
        membership = self._capture()
        slices = tuple(
            Slice(
                tp.partition,
                [r.offset for r in records],
                [r.timestamp / 1000.0 for r in records],
                [r.value for r in records],
            )
            for tp, records in found.items()
        )
        positions, ends = {}, {}
        for tp in self._consumer.assignment():
            with contextlib.suppress(client_errors.IllegalStateError, AssertionError):
                at, end = self._consumer.position(tp, timeout_ms=0), self._consumer.highwater(tp)
                if at is not None:
                    positions[tp.partition] = at
                if end is not None:
                    ends[tp.partition] = end
        return Polled(slices, positions, membership, self._listener.take(), out_of_range, ends)

    def _capture(self) -> Membership | None:
        """Read the generation before and after the assignment; None unless both agree and the member is stable."""
        before = self._consumer.group_metadata()
        partitions = frozenset(tp.partition for tp in self._consumer.assignment())
        after = self._consumer.group_metadata()
        if before != after or after.state != MemberState.STABLE or after.generation_id < 0 or not after.member_id:
            return None
        return Membership(after.generation_id, after.member_id, partitions, after)

    @guarded()
    def seek(self, partition: int, offset: int) -> None:
        """Read from `offset` on, if the partition is still assigned."""
        self._reading.begin(TopicPartition(self._topic, partition), offset)

    @guarded()
    def pause(self, partitions: Collection[int]) -> None:
        """Pause those partitions that are still assigned."""
        self._consumer.pause(*self._assigned(partitions))

    @guarded()
    def resume(self, partitions: Collection[int]) -> None:
        """Resume assigned partitions where they were."""
        assigned = self._assigned(partitions)
        self._reading.again(assigned)
        self._consumer.resume(*assigned)

    def _assigned(self, partitions: Collection[int]) -> list[TopicPartition]:
        return [tp for tp in self._consumer.assignment() if tp.partition in partitions]

    @guarded()
    def ledgers(self, partitions: Collection[int]) -> dict[int, Committed | None]:
        """Read all ledgers at once; if that is not stable in time, each on its own."""
        wanted = [TopicPartition(self._topic, p) for p in sorted(partitions)]
        if not wanted:
            return {}
        try:
            return self._ledgers(wanted, _STABLE_READ)
        except client_errors.KafkaTimeoutError:
            found: dict[int, Committed | None] = {}
            for tp in wanted:
                with contextlib.suppress(client_errors.KafkaTimeoutError):
                    found.update(self._ledgers([tp], _STABLE_READ / 4))
            return found
        except client_errors.KafkaError as error:
            raise translate(error) from None

    def _ledgers(self, wanted: list[TopicPartition], timeout: float) -> dict[int, Committed | None]:
        # committed() asks for one partition only; the coordinator behind it takes a list. It keeps the question that
        # nobody waited for, and would give its answer, by then an old one, to whoever asks next: a ledger that was
        # followed by others, from which rows would be published again.
        coordinator = self._consumer._coordinator
        coordinator._offset_fetch_futures.clear()
        found = coordinator.fetch_committed_offsets(wanted, timeout_ms=int(timeout * 1000))
        result: dict[int, Committed | None] = {tp.partition: None for tp in wanted}
        for tp, value in found.items():
            if value.offset >= 0:
                result[tp.partition] = Committed(value.offset, value.metadata or "")
        return result

    @guarded()
    def glance(self, partitions: Collection[int]) -> dict[int, Committed]:
        """Return what is committed, settled or not."""
        with translated():
            return self._topics.glance(partitions)

    @guarded()
    def read(self, topic: str, since: Mapping[int, int], committed: bool) -> Iterator[Stored]:
        """Yield the records of some partitions from some offsets on."""
        with translated():
            yield from self._topics.read(topic, since, committed)

    @guarded()
    def replace_ledgers(self, texts: Mapping[int, Committed]) -> None:
        """Commit from outside the group: the broker accepts it while the group has no members."""
        found = self._offsets(texts)
        with translated():
            outside = KafkaConsumer(**self._outside)
            try:
                outside.assign(list(found))
                outside.commit(found)
            except (client_errors.CommitFailedError, client_errors.UnknownMemberIdError):
                raise GroupInUseError from None
            finally:
                outside.close(autocommit=False)

    @guarded()
    def fetch(self, refs: Iterable[Ref]) -> dict[Ref, bytes | None]:
        """Read records by offset with a consumer outside the group."""
        with translated():
            return self._topics.fetch(refs)

    @guarded()
    def facts(self, topic: str) -> TopicFacts:
        """Return the facts of a topic."""
        with translated():
            facts = self._topics.facts(topic)
        if topic != self._topic:
            self._largest_batch = min(self._largest_batch, facts.max_message_bytes)
        return facts

    @guarded()
    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the first and end offset of each partition."""
        with translated():
            return self._topics.bounds(topic)

    @guarded()
    def offsets_at(self, topic: str, when: float) -> dict[int, int]:
        """Return the first offsets at or after a time."""
        with translated():
            return self._topics.offsets_at(topic, when)

    def run_in_background(self, call: Callable[[], None]) -> Pending:
        """Run the call on its own thread: a transaction mostly waits, and kernels release the interpreter."""
        return self._beside.submit(call)

    @guarded()
    def begin(self) -> None:
        """Open a transaction; the producer is created when first needed."""
        if self._producer is None:
            self.renew()
        with translated():
            self._producer.begin_transaction()
        self._futures = []

    @guarded()
    def send(self, records: Sequence[Outgoing]) -> None:
        """Send the records; the answers are checked before the commit."""
        with translated():
            self._futures += [(future, _batch_of(future)) for future in send_all(self._producer, records)]

    @guarded(_TOO_LATE)
    def write(self, records: Sequence[Placed]) -> list[int]:
        """Send records and wait for their answers."""
        with translated():
            futures = [
                self._producer.send(topic, value=value, key=key, partition=partition)
                for topic, partition, key, value in records
            ]
            self._producer.flush(timeout=_TOO_LATE)
            offsets = [future.value.offset if future.is_done and future.succeeded() else -1 for future in futures]
        if any(offset < 0 for offset in offsets):
            raise AbortableError("a record was not taken")
        return offsets

    @guarded(_TOO_LATE)
    def send_offsets(self, offsets: Mapping[int, Committed], membership: Membership) -> None:
        """Add offsets under the captured generation; one that is over makes the transaction abortable."""
        with translated():
            self._producer.send_offsets_to_transaction(self._offsets(offsets), membership.token)

    def _offsets(self, texts: Mapping[int, Committed]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {TopicPartition(self._topic, p): OffsetAndMetadata(c.offset, c.metadata, -1) for p, c in texts.items()}

    @guarded()
    def commit(self) -> None:
        """Flush, check every answer, then commit."""
        with translated():
            try:
                self._producer.flush(timeout=30)
            except client_errors.UnknownError:  # that is how the client gives up on a batch it has split
                raise AbortableError("a batch was too large for its topic") from None
        for future, batch in self._futures:
            if not future.is_done or future.failed():
                raise AbortableError(f"a record was not taken: {type(getattr(future, 'exception', None)).__name__}")
            if _batch_of(future) is not batch:  # one answer stands for a batch, and this one was cut in two
                raise AbortableError("a batch was split")
        self._futures = []
        try:
            self._producer.commit_transaction()
        except client_errors.ProducerFencedError:
            raise FencedError("another worker took this transactional id") from None
        except client_errors.KafkaError as error:
            raise OutcomeUnknownError(f"the commit was not answered: {type(error).__name__}") from None

    @guarded()
    def renew(self) -> None:
        """Close the producer without waiting and replace it by one with the same id, which aborts whatever was open."""
        old, self._producer, self._futures = self._producer, None, []
        with translated():
            if old is not None:
                with contextlib.suppress(client_errors.KafkaError, AttributeError):
                    old._sender.force_close()  # closing alone waits for what was not sent, and then gives up
                    old.close(timeout=0)
            options = dict(self._producer_options)
            # A batch that a topic does not take is split by the client, which then gives up flushing.
            options["batch_size"] = min(options["batch_size"], self._largest_batch)
            producer = KafkaProducer(**options)
            producer.init_transactions()
            self._producer = producer

    @guarded()
    def close(self) -> None:
        """Leave the group; an open transaction is left to its time-out or to the next producer of this id."""
        with contextlib.suppress(client_errors.KafkaError):
            if self._producer is not None:
                self._producer.close(timeout=1)
            self._consumer.close(autocommit=False, timeout_ms=3_000)
            self._topics.close()


def _batch_of(future: Any) -> object:
    """Return the batch whose answer a future waits for."""
    return getattr(future, "_produce_future", None)


def _quiet(record: logging.LogRecord) -> bool:
    """Drop the client's repeated errors about a predecessor's open transaction, which is waited for."""
    return "UnstableOffsetCommit" not in record.getMessage()
