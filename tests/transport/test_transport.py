"""One contract: memory and each client on a real broker agree on everything the worker builds upon."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from stream_anon.kafka.clients import client_of
from stream_anon.kafka.clients.confluent import transport as confluent
from stream_anon.kafka.clients.kafka_python import transport as kafka
from stream_anon.kafka.clients.kafka_python.topics import await_topics
from stream_anon.kafka.transport import (
    AbortableError,
    Committed,
    Outgoing,
    Placed,
    Polled,
    Transport,
    TransportError,
)
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import MemoryBroker


class Memory:
    """A world in memory."""

    def __init__(self) -> None:
        self.broker = MemoryBroker("in", partitions=2)
        self.broker.create_topic("out")
        self.broker.create_topic("kept", 2)
        self.input, self.output, self.kept = "in", "out", "kept"
        self.made: list[Transport] = []

    def transport(self, member: str, transactional_id: str | None = None) -> Transport:
        return MemoryTransport(self.broker, member, transactional_id)

    def produce(self, partition: int, *values: bytes) -> None:
        for value in values:
            self.broker.produce("in", partition, value)

    def read(self, committed: bool) -> list[bytes]:
        return [e.value or b"" for e in self.broker.read("out", committed)]

    def close(self) -> None:
        pass


class Real:
    """The same world on a real broker."""

    def __init__(self, bootstrap: str, name: str, client: str) -> None:
        from kafka import KafkaAdminClient, KafkaProducer
        from kafka.admin import NewTopic

        self.bootstrap, self.name, self.client = bootstrap, name, client
        self.input, self.output, self.kept = f"{name}-in", f"{name}-out", f"{name}-kept"
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        counts = {self.input: 2, self.output: 1, self.kept: 2}
        self._admin.create_topics([NewTopic(topic, count, 1) for topic, count in counts.items()])
        await_topics(self._admin, list(counts))
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)
        self.made: list[Transport] = []

    def transport(self, member: str, transactional_id: str | None = None) -> Transport:
        made = client_of(self.client).transport(
            self.bootstrap,
            self.name,
            self.input,
            transactional_id=f"{self.name}-{transactional_id or member}",
            options={"session.timeout.ms": 6000, "transaction.timeout.ms": 6000},
        )
        self.made.append(made)
        return made

    def produce(self, partition: int, *values: bytes) -> None:
        for value in values:
            self._producer.send(self.input, value=value, partition=partition)
        self._producer.flush()

    def read(self, committed: bool) -> list[bytes]:
        from kafka import KafkaConsumer, TopicPartition

        level = "read_committed" if committed else "read_uncommitted"
        reader = KafkaConsumer(bootstrap_servers=self.bootstrap, isolation_level=level, auto_offset_reset="earliest")
        reader.assign([TopicPartition(self.output, 0)])
        found = []
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            for records in reader.poll(timeout_ms=200).values():
                found += [r.value for r in records]
        reader.close()
        return found

    def close(self) -> None:
        for made in self.made:
            made.close()
        self._producer.close()
        self._admin.close()


CLIENTS = "kafka-python", "confluent-kafka"


@pytest.fixture(params=["memory", *CLIENTS])
def world(request: pytest.FixtureRequest, name: str) -> Iterator[Memory | Real]:
    if request.param == "memory":
        made: Memory | Real = Memory()
    else:
        made = Real(request.getfixturevalue("bootstrap"), name, request.param)
    yield made
    made.close()


def poll_until(transport: Transport, done: Callable[[Polled], bool], timeout: float = 25.0) -> Polled:
    end = time.monotonic() + timeout
    while True:
        polled = transport.poll(0.1, 1000)
        if done(polled):
            return polled
        assert time.monotonic() < end, "the expected poll did not come"


def joined(transport: Transport, partitions: set[int]) -> Polled:
    seen: set[int] = set()

    def ready(polled: Polled) -> bool:
        seen.update(polled.assigned)
        return polled.membership is not None and polled.membership.partitions == partitions

    polled = poll_until(transport, ready)
    assert seen >= partitions or not partitions
    return polled


def start(transport: Transport, partitions: set[int]) -> Polled:
    polled = joined(transport, partitions)
    for partition in partitions:
        transport.seek(partition, 0)
    transport.resume(partitions)
    return polled


def transact(transport: Transport, polled: Polled, out: list[Outgoing], offsets: dict[int, Committed]) -> None:
    assert polled.membership is not None
    transport.begin()
    transport.send(out)
    transport.send_offsets(offsets, polled.membership)
    transport.commit()


def transact_open(transport: Transport, polled: Polled) -> None:
    assert polled.membership is not None
    transport.send_offsets({0: Committed(1, "zombie\0")}, polled.membership)
    transport.commit()


def test_assigned_partitions_wait_until_they_are_resumed(world: Memory | Real) -> None:
    world.produce(0, b"a", b"b")
    t = world.transport("w")
    joined(t, {0, 1})
    assert not any(t.poll(0.1, 10).slices for _ in range(5))
    t.seek(0, 1)
    t.resume([0])
    polled = poll_until(t, lambda p: bool(p.slices))
    assert polled.slices[0].offsets == [1]
    assert polled.slices[0].values == [b"b"]
    assert polled.positions[0] == 2


def test_a_lone_member_gets_everything_with_its_first_generation(world: Memory | Real) -> None:
    """A client that joins before it knows the topic's partitions is given none, and may wait long for the next."""
    before = world.transport("v")  # the broker's coordinator is at work already, and answers at once
    joined(before, {0, 1})
    before.close()
    polled = poll_until(world.transport("w"), lambda polled: polled.membership is not None)
    assert polled.membership is not None
    assert polled.membership.partitions == {0, 1}


def test_pause_brings_nothing_and_loses_nothing(world: Memory | Real) -> None:
    t = world.transport("w")
    start(t, {0, 1})
    t.pause([0])
    world.produce(0, b"a")
    world.produce(1, b"b")
    polled = poll_until(t, lambda p: bool(p.slices))
    assert [s.partition for s in polled.slices] == [1]
    t.resume([0])
    polled = poll_until(t, lambda p: bool(p.slices))
    assert [(s.partition, s.values) for s in polled.slices] == [(0, [b"a"])]


def test_a_seek_holds_over_a_pause(world: Memory | Real) -> None:
    world.produce(0, b"a", b"b", b"c")
    t = world.transport("w")
    start(t, {0, 1})
    poll_until(t, lambda p: p.positions.get(0) == 3)
    t.seek(0, 1)
    t.pause([0])
    assert not t.poll(0.1, 10).slices
    t.resume([0])
    assert poll_until(t, lambda p: bool(p.slices)).slices[0].offsets[0] == 1


def test_a_transaction_is_atomic_and_carries_metadata(world: Memory | Real) -> None:
    t = world.transport("w")
    polled = start(t, {0, 1})
    assert t.ledgers([0, 1]) == {0: None, 1: None}
    big = "x" * 4095 + "\0"
    transact(t, polled, [Outgoing(world.output, b"k", [b"v"])], {0: Committed(3, big), 1: Committed(0, "")})
    assert t.ledgers([0, 1]) == {0: Committed(3, big), 1: Committed(0, "")}
    assert world.read(committed=True) == [b"v"]


def test_an_aborted_record_is_seen_by_uncommitted_readers_only(world: Memory | Real) -> None:
    t = world.transport("w")
    polled = start(t, {0, 1})
    assert polled.membership is not None
    t.begin()
    t.send([Outgoing(world.output, b"k", [b"aborted"])])
    t.send_offsets({0: Committed(9, "no\0")}, polled.membership)
    t.renew()
    transact(t, polled, [Outgoing(world.output, b"k", [b"kept"])], {0: Committed(1, "yes\0")})
    assert t.ledgers([0]) == {0: Committed(1, "yes\0")}
    assert world.read(committed=True) == [b"kept"]
    assert set(world.read(committed=False)) >= {b"kept"}


def marks(transport: Transport, world: Memory | Real, since: int, *, committed: bool) -> list[bytes]:
    return [record.mark for record in transport.read(world.output, {0: since}, committed) if record.mark]


def test_marks_are_found_from_an_offset_on_by_both_kinds_of_reader(world: Memory | Real) -> None:
    t = world.transport("w")
    polled = start(t, {0, 1})
    assert marks(t, world, 0, committed=True) == marks(t, world, 0, committed=False) == []
    transact(t, polled, [Outgoing(world.output, b"k", [b"v", b"w"], b"one")], {0: Committed(1, "a\0")})
    t.begin()
    t.send([Outgoing(world.output, b"k", [b"x"]), Outgoing(world.output, b"k", [b"y", b"z"], b"aborted")])
    poll_until(t, lambda _: marks(t, world, 0, committed=False) == [b"one", b"aborted"])
    with pytest.raises(AbortableError):
        marks(t, world, 0, committed=True)
    t.renew()
    polled = poll_until(t, lambda p: p.membership is not None)
    transact(t, polled, [Outgoing(world.output, b"k", [b"u"], b"two")], {0: Committed(2, "b\0")})
    assert marks(t, world, 0, committed=False) == [b"one", b"aborted", b"two"]
    assert marks(t, world, 0, committed=True) == [b"one", b"two"]
    assert marks(t, world, 1, committed=True) == [b"two"]
    assert world.read(committed=True) == [b"v", b"w", b"u"]


def stored(transport: Transport, world: Memory | Real, since: dict[int, int], *, committed: bool) -> set[object]:
    found = transport.read(world.kept, since, committed)
    return {(record.partition, record.offset, record.key, record.value) for record in found}


def test_a_record_stands_where_it_was_written(world: Memory | Real) -> None:
    """Whoever writes is told the exact place before the transaction ends, and every reader finds it there."""
    t = world.transport("w")
    polled = start(t, {0, 1})
    assert polled.membership is not None
    t.begin()
    assert t.write([Placed(world.kept, 1, b"b", b"one"), Placed(world.kept, 0, b"a", b"two")]) == [0, 0]
    both = {(1, 0, b"b", b"one"), (0, 0, b"a", b"two")}
    assert stored(t, world, {0: 0, 1: 0}, committed=False) == both
    with pytest.raises(AbortableError):
        stored(t, world, {0: 0, 1: 0}, committed=True)
    t.send_offsets({0: Committed(1, "points there\0")}, polled.membership)
    t.commit()
    poll_until(t, lambda _: stored(t, world, {0: 0, 1: 0}, committed=False) == both)
    assert stored(t, world, {1: 0}, committed=True) == {(1, 0, b"b", b"one")}
    assert stored(t, world, {1: 1, 0: 5}, committed=True) == set()
    t.begin()
    [offset] = t.write([Placed(world.kept, 1, b"b", b"aborted")])
    assert offset == 2, "behind the marker of the first"
    t.renew()
    polled = poll_until(t, lambda p: p.membership is not None)
    assert stored(t, world, {1: 1}, committed=False) == {(1, 2, b"b", b"aborted")}
    assert stored(t, world, {1: 1}, committed=True) == set()
    t.begin()
    assert t.write([Placed(world.kept, 1, b"b", b"x" * 1_000_000)]) == [4]
    assert polled.membership is not None
    t.send_offsets({0: Committed(2, "points there\0")}, polled.membership)
    t.commit()
    assert t.ledgers([0]) == {0: Committed(2, "points there\0")}


def test_a_record_for_which_there_is_no_place_is_refused(world: Memory | Real) -> None:
    t = world.transport("w")
    start(t, {0, 1})
    t.begin()
    with pytest.raises(TransportError):
        t.write([Placed(world.kept, 0, b"a", b"x" * 3_000_000)])
    t.renew()
    t.begin()
    assert t.write([Placed(world.kept, 0, b"a", b"small")])


def test_a_glance_shows_what_an_open_transaction_will_replace(world: Memory | Real) -> None:
    t = world.transport("w")
    polled = start(t, {0, 1})
    assert t.glance([0, 1]) == {}
    transact(t, polled, [], {0: Committed(1, "old\0")})
    t.begin()
    assert polled.membership is not None
    t.send_offsets({0: Committed(2, "new\0")}, polled.membership)
    assert t.ledgers([0]) == {}
    assert t.glance([0, 1]) == {0: Committed(1, "old\0")}
    t.commit()
    poll_until(t, lambda _: t.glance([0]) == {0: Committed(2, "new\0")})


def test_offsets_of_an_open_transaction_are_not_known(world: Memory | Real) -> None:
    first = world.transport("w", "one")
    polled = start(first, {0, 1})
    assert polled.membership is not None
    transact(first, polled, [], {0: Committed(1, "old\0"), 1: Committed(1, "old\0")})
    first.begin()
    first.send_offsets({0: Committed(2, "new\0")}, polled.membership)
    known: list[dict[int, Committed | None]] = []

    def told(_: Polled) -> bool:
        known.append(first.ledgers([0, 1]))  # nothing, while the broker is slow
        return bool(known[-1])

    poll_until(first, told)
    assert known[-1] == {1: Committed(1, "old\0")}
    assert all(0 not in each for each in known)
    first.commit()
    poll_until(first, lambda _: first.ledgers([0]) == {0: Committed(2, "new\0")})


def test_an_answer_that_nobody_waited_for_is_not_given_later(
    world: Memory | Real, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that others have followed since would have its rows published again."""
    t = world.transport("w")
    polled = start(t, {0, 1})
    known = 0
    for number in range(1, 40):
        for module in (kafka, confluent):  # now and then no time at all: that answer is never waited for
            monkeypatch.setattr(module, "_STABLE_READ", 0.002 * (number % 3))
        transact(t, polled, [], {0: Committed(number, "text\0")})
        answer = t.ledgers([0])
        known += bool(answer)
        assert answer in ({}, {0: Committed(number, "text\0")})
        time.sleep(0.01)
    monkeypatch.undo()
    assert t.ledgers([0]) == {0: Committed(39, "text\0")}
    assert known < 39 or isinstance(world, Memory), "every answer came in time: nothing was tried"


def test_a_generation_that_is_over_is_refused_and_the_worker_goes_on(world: Memory | Real) -> None:
    first, second = world.transport("a"), world.transport("b")
    old = start(first, {0, 1})
    assert old.membership is not None
    moved: list[Polled] = []
    end = time.monotonic() + 120
    while time.monotonic() < end:
        moved = [first.poll(0.05, 10), second.poll(0.05, 10)]
        settled = [p.membership for p in moved if p.membership and len(p.membership.partitions) == 1]
        if len(settled) == 2 and settled[0].generation == settled[1].generation:  # one may be behind the other
            break
    first.begin()
    with pytest.raises(AbortableError):
        first.send_offsets({0: Committed(1, "late\0")}, old.membership)
    first.renew()
    assert moved[0].membership is not None
    mine = next(iter(moved[0].membership.partitions))
    transact(first, moved[0], [], {mine: Committed(1, "now\0")})
    assert first.ledgers([0, 1])[mine] == Committed(1, "now\0")


def test_a_second_producer_of_the_same_id_fences_the_first(world: Memory | Real) -> None:
    first = world.transport("a", "slot")
    polled = start(first, {0, 1})
    first.begin()
    first.send([Outgoing(world.output, b"k", [b"zombie"])])
    second = world.transport("b", "slot")
    second.renew()
    assert polled.membership is not None
    with pytest.raises(TransportError):  # where a client notices differs; that it notices does not
        transact_open(first, polled)
    assert second.ledgers([0]) == {0: None}
    assert world.read(committed=True) == []


def test_records_are_fetched_by_offset_outside_the_group(world: Memory | Real) -> None:
    world.produce(0, b"a", b"b", b"c")
    world.produce(1, b"d")
    t = world.transport("w")
    assert t.fetch([(0, 2), (1, 0), (0, 0), (0, 77)]) == {(0, 0): b"a", (0, 2): b"c", (1, 0): b"d"}


def test_facts_and_bounds(world: Memory | Real) -> None:
    world.produce(1, b"a")
    t = world.transport("w")
    facts = t.facts(world.input)
    assert facts.partitions == 2
    assert facts.topic_id
    assert facts.cluster_id
    assert facts.cleanup_policy == "delete"
    assert t.facts(world.output).topic_id != facts.topic_id
    assert t.bounds(world.input) == {0: (0, 0), 1: (0, 1)}
    assert t.offsets_at(world.input, 0.0) == {0: 0, 1: 0}
    assert t.offsets_at(world.input, 4e9) == {0: 0, 1: 1}
    with pytest.raises(TransportError):
        t.facts("no-such-topic")


def test_a_position_outside_the_log_is_reported(world: Memory | Real) -> None:
    world.produce(0, b"a")
    t = world.transport("w")
    start(t, {0, 1})
    t.seek(0, 50)
    assert poll_until(t, lambda p: bool(p.out_of_range)).out_of_range == {0}


def test_close_leaves_the_group(world: Memory | Real) -> None:
    first, second = world.transport("a"), world.transport("b")
    joined(first, {0, 1})
    first.close()
    joined(second, {0, 1})


def test_members_that_are_busy_between_polls_become_a_group(world: Memory | Real) -> None:
    """What the broker answers while nobody polls counts: else each poll begins another rebalance, for ever."""
    members = [world.transport(name) for name in ("a", "b")]
    end = time.monotonic() + 60
    while True:
        found = [member.poll(0.0, 10).membership for member in members]
        shares = [len(one.partitions) for one in found if one is not None]
        if shares == [1, 1] and len({one.generation for one in found if one is not None}) == 1:
            break
        assert time.monotonic() < end, "no generation became stable"
        if isinstance(world, Real):
            time.sleep(0.3)
    assert found[0] is not None
    assert found[0].generation <= 8, "each member that comes costs two rebalances"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_partition_added_is_given_to_a_busy_member(bootstrap: str, name: str, client: str) -> None:
    """A rebalance because of new metadata ends while nobody polls, too, and must not be forgotten."""
    from kafka.admin import NewPartitions

    world = Real(bootstrap, name, client)
    options = {"session.timeout.ms": 6000, "metadata.max.age.ms": 1000}
    member = client_of(client).transport(bootstrap, name, world.input, transactional_id=name, options=options)
    world.made.append(member)
    try:
        joined(member, {0, 1})
        world._admin.create_partitions({world.input: NewPartitions(3)})
        end, polled = time.monotonic() + 60, None
        while polled is None or polled.membership is None or polled.membership.partitions != {0, 1, 2}:
            assert time.monotonic() < end, "it was never given"
            time.sleep(0.3)
            polled = member.poll(0.0, 10)
    finally:
        world.close()
