"""The transport over confluent-kafka: the only module that knows this client's consumer, producer and their traps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from stream_anon.kafka.clients.confluent.answers import columns_of, ended, read_token
from stream_anon.kafka.clients.confluent.errors import passing, translate, translated
from stream_anon.kafka.clients.confluent.options import CONSUMER, PRODUCER, client_options, make
from stream_anon.kafka.clients.confluent.topics import ConfluentTopics, consume
from stream_anon.kafka.transport import (
    MARK,
    AbortableError,
    Committed,
    Membership,
    OutcomeUnknownError,
    Outgoing,
    Pending,
    Placed,
    Polled,
    Ref,
    Stored,
    TopicFacts,
)
from stream_anon.kafka.watchdog import Watchdog, guarded

_ANSWER = 20.0  # seconds for a step of a transaction; more than the broker needs to elect a coordinator
_TOO_LATE = 30.0  # seconds after which none will come: this client repeats a question for minutes, whatever it is told
_RENEWAL = 40.0  # seconds for a new producer: a broker may be starting again
_ABORT = 2.0  # seconds for a producer that is given up anyway
_STABLE_READ = 0.5  # seconds to wait for a predecessor's open transaction, before the loop goes on and asks again
_PLAIN: dict[str, Any] = {}  # what a record without a mark is sent with


class ConfluentTransport:
    """A worker's consumer, transactional producer, and a second consumer outside the group for single records.

    Rebalances are reported inside `poll`, on its thread. Metadata are C strings to this client: it adds the NUL that
    ends a ledger when it sends, and leaves it off when it reads.
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
        common = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 1_000}
        chosen = client_options(options or {})
        self._watchdog = watchdog or Watchdog()
        self.group, self._topic = group, topic
        self._topics = ConfluentTopics({**common, **chosen}, group, topic)
        mine = {k: v for k, v in chosen.items() if k != "group.instance.id"}
        self._producer_options = {**common, **PRODUCER, **mine, "transactional.id": transactional_id}
        self._producer: Producer | None = None
        self._largest_batch = int(self._producer_options["batch.size"])  # bytes that each topic written to takes
        self._beside = ThreadPoolExecutor(1, "transaction")
        self._positions: dict[int, int] = {}
        self._owned: set[int] = set()
        self._paused: set[int] = set()
        self._assigned: set[int] = set()
        self._settled = b""
        self._subscribed = self._introduced = self._leaving = False
        decided = {"group.id": group, "isolation.level": "read_committed", "enable.auto.commit": False}
        decided |= {"auto.offset.reset": "error", "partition.assignment.strategy": "cooperative-sticky"}
        decided |= {"enable.partition.eof": True}  # reports the position behind records that are never delivered
        with translated():
            self._consumer = make(Consumer, {**common, **CONSUMER, **chosen, **decided})

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Assign and pause new partitions at a position nobody reads from; called in every generation.

        The position is a number: the client looks up a word like "end" again when it resumes, after a seek too.
        """
        if self._leaving:  # a closing consumer still gets callbacks, but may no longer be asked
            return
        self._settled = bytes(consumer.consumer_group_metadata())
        new = [TopicPartition(self._topic, tp.partition, 0) for tp in partitions]
        consumer.incremental_assign(new)
        consumer.pause(new)
        numbers = {tp.partition for tp in new}
        self._owned |= numbers
        self._paused |= numbers
        self._assigned |= numbers
        self._introduced = True

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Stop reading partitions that were given up or lost; no membership is stable until the next generation."""
        numbers = {tp.partition for tp in partitions}
        self._owned -= numbers
        self._paused -= numbers
        self._assigned -= numbers
        for number in numbers:
            self._positions.pop(number, None)
        self._settled = b""

    @guarded()
    def poll(self, timeout: float, limit: int) -> Polled:
        """Poll, then capture generation, member and assignment together. The first poll joins the group."""
        if not self._subscribed:
            self._consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
            self._subscribed = True
        out_of_range: set[int] = set()
        with translated():
            found = consume(self._consumer, max(1, limit), timeout)
            errors = list(map(Message.error, found))
            if any(errors):
                for message, error in zip(found, errors, strict=True):
                    if error is not None:
                        self._heed(error, message, out_of_range)
                found = [message for message, error in zip(found, errors, strict=True) if error is None]
        parts = columns_of(found)
        fresh, self._assigned = frozenset(self._assigned), set()
        slices = tuple(part for part in parts if part.partition in self._owned - fresh)
        for part in slices:
            self._advance(part.partition, part.offsets[-1] + 1)
        member, ends = self._capture(), self._ends()
        over = member is None  # the client goes on under the old generation until it hears of the next
        return Polled(slices, dict(self._positions), member, fresh, frozenset(out_of_range), ends, over)

    def _heed(self, error: KafkaError, message: Message, out_of_range: set[int]) -> None:
        code, number = error.code(), message.partition()
        if code == KafkaError._PARTITION_EOF:
            self._advance(number, message.offset())
        elif code == KafkaError._AUTO_OFFSET_RESET:
            out_of_range |= {number} & self._positions.keys()
        elif code not in (KafkaError._MAX_POLL_EXCEEDED, KafkaError.UNKNOWN_TOPIC_OR_PART) and not passing(error):
            raise translate(error)

    def _advance(self, number: int, offset: int) -> None:
        if number in self._positions:
            self._positions[number] = max(self._positions[number], offset)

    def _capture(self) -> Membership | None:
        """Return the membership, or None unless the client is still in the generation it last reported."""
        token = bytes(self._consumer.consumer_group_metadata())
        if not self._settled or token != self._settled:
            return None
        generation, member = read_token(token)
        return Membership(generation, member, frozenset(self._owned), token) if generation >= 0 and member else None

    def _ends(self) -> dict[int, int]:
        ends = {}
        for number in self._owned:
            with contextlib.suppress(KafkaException):
                known = self._consumer.get_watermark_offsets(TopicPartition(self._topic, number), cached=True)
                if known is not None and known[1] >= 0:
                    ends[number] = known[1]
        return ends

    @guarded()
    def seek(self, partition: int, offset: int) -> None:
        """Read from `offset` on, if the partition is still assigned; one that the client dropped is assigned again."""
        if partition not in self._owned:
            return
        place = TopicPartition(self._topic, partition, offset)
        with translated():
            try:
                self._consumer.seek(place)
            except KafkaException:
                self._consumer.incremental_unassign([place])
                self._consumer.incremental_assign([place])
                if partition in self._paused:
                    self._consumer.pause([place])
        self._positions[partition] = offset

    @guarded()
    def pause(self, partitions: Collection[int]) -> None:
        """Pause those partitions that are still assigned."""
        mine = (self._owned & set(partitions)) - self._paused
        self._paused |= mine
        with translated():
            self._consumer.pause([TopicPartition(self._topic, number) for number in mine])

    @guarded()
    def resume(self, partitions: Collection[int]) -> None:
        """Resume assigned partitions behind the last record handed out: the client drops what it had prefetched."""
        mine = self._owned & set(partitions) & self._paused
        self._paused -= mine
        with translated():
            self._consumer.resume([TopicPartition(self._topic, number) for number in mine])
        for number in mine & self._positions.keys():
            self.seek(number, self._positions[number])

    @guarded()
    def ledgers(self, partitions: Collection[int]) -> dict[int, Committed | None]:
        """Read all ledgers at once; if that is not stable in time, each on its own.

        Outside the group the first answer takes longer: the coordinator has to be found.
        """
        wanted = sorted(partitions)
        found = self._ledgers(wanted, _STABLE_READ if self._introduced else _ANSWER)
        if found is None:
            found = {}
            for number in wanted:
                found |= self._ledgers([number], _STABLE_READ / 4) or {}
        return found

    def _ledgers(self, wanted: list[int], timeout: float) -> dict[int, Committed | None] | None:
        """Read these ledgers; return None if no answer came in time."""
        if not wanted:
            return {}
        try:
            answers = self._consumer.committed([TopicPartition(self._topic, number) for number in wanted], timeout)
        except KafkaException as error:
            if passing(error.args[0]):
                return None
            raise translate(error.args[0]) from None
        self._introduced = True
        if any(tp.error is not None for tp in answers):
            return None
        return {tp.partition: Committed(tp.offset, ended(tp.metadata)) if tp.offset >= 0 else None for tp in answers}

    @guarded()
    def glance(self, partitions: Collection[int]) -> dict[int, Committed]:
        """Return what is committed, settled or not."""
        with translated():
            found = self._topics.committed(partitions)
        return {tp.partition: Committed(tp.offset, ended(tp.metadata)) for tp in found if tp.offset >= 0}

    @guarded()
    def read(self, topic: str, since: Mapping[int, int], committed: bool) -> Iterator[Stored]:
        """Yield the records of some partitions from some offsets on."""
        with translated():
            yield from self._topics.read(topic, since, committed)

    @guarded()
    def replace_ledgers(self, texts: Mapping[int, Committed]) -> None:
        """Commit from outside the group: the broker accepts it while the group has no members."""
        with translated():
            self._topics.commit(self._offsets(texts))

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

    @property
    def _open(self) -> Producer:
        if self._producer is None:
            raise AbortableError("no transaction is open")
        return self._producer

    @guarded()
    def begin(self) -> None:
        """Open a transaction; the producer is created when first needed."""
        if self._producer is None:
            self.renew()
        with translated():
            self._open.begin_transaction()

    @guarded()
    def send(self, records: Sequence[Outgoing]) -> None:
        """Queue records; one that is not taken makes the commit fail. Keys are partitioned as the other client does."""
        produce, poll = self._open.produce, self._open.poll
        with translated():
            for topic, key, values, mark in records:
                more = {"headers": [(MARK, mark)]} if mark else _PLAIN  # a keyword doubles the cost of a call
                for value in values:
                    while True:
                        try:
                            produce(topic, value, key, **more)
                            break
                        except BufferError:
                            poll(0.05)
                        except KafkaException as error:
                            if error.args[0].code() != KafkaError._STATE:
                                raise
                            return  # the transaction has failed already: the commit tells why
                    more = _PLAIN
            poll(0)

    @guarded(_TOO_LATE)
    def write(self, records: Sequence[Placed]) -> list[int]:
        """Send records and wait for their reports."""
        taken: dict[int, int] = {}

        def report(number: int, error: KafkaError | None, message: Message) -> None:
            if error is None and (offset := message.offset()) is not None and offset >= 0:
                taken[number] = offset

        with translated():
            for number, (topic, partition, key, value) in enumerate(records):
                self._open.produce(topic, value, key, partition, on_delivery=partial(report, number))
            self._open.flush(_ANSWER)
        if len(taken) < len(records):
            raise AbortableError("a record was not taken")
        return [taken[number] for number in range(len(records))]

    @guarded(_TOO_LATE)
    def send_offsets(self, offsets: Mapping[int, Committed], membership: Membership) -> None:
        """Add offsets under the captured generation; one that is over makes the transaction abortable."""
        with translated():
            self._open.send_offsets_to_transaction(self._offsets(offsets), membership.token, _ANSWER)

    def _offsets(self, texts: Mapping[int, Committed]) -> list[TopicPartition]:
        return [TopicPartition(self._topic, n, text.offset, text.metadata.rstrip("\0")) for n, text in texts.items()]

    @guarded(_TOO_LATE)
    def commit(self) -> None:
        """Commit; the client first waits until every record was taken."""
        try:
            self._open.commit_transaction(_ANSWER)
        except KafkaException as error:
            why: KafkaError = error.args[0]
            if why.fatal() or why.txn_requires_abort():
                raise translate(why) from None
            raise OutcomeUnknownError(f"the commit was not answered: {why.name()}") from None

    @guarded()
    def renew(self) -> None:
        """Replace the producer by a new one with the same id, which aborts whatever was open.

        A new producer that finds a transaction open, or no connection, waits half a second before it asks again: so
        the old one aborts where it can, and the new one is connected first.
        """
        with translated():
            if self._producer is not None:
                with contextlib.suppress(KafkaException):
                    self._producer.abort_transaction(_ABORT)
            self._drop_producer()
            # A batch that a topic does not take fails whole, however small its records are.
            producer = make(Producer, {**self._producer_options, "batch.size": self._largest_batch})
            producer.list_topics(self._topic, _RENEWAL)
            producer.init_transactions(_RENEWAL)
            self._producer = producer

    def _drop_producer(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None  # the last reference: the client's threads end

    @guarded()
    def close(self) -> None:
        """Leave the group; an open transaction is left to its time-out or to the next producer of this id."""
        with contextlib.suppress(KafkaException, RuntimeError):
            self._leaving = True
            self._drop_producer()
            self._consumer.close()
            self._topics.close()
