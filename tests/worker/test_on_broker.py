"""The rules of the protocol on a real broker, where each failure was once seen to happen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fifo import parts
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from test_worker import Notes

from stream_anon.errors import StreamAnonError
from stream_anon.io.broker import LocalBroker
from stream_anon.io.clients import client_of
from stream_anon.io.transport import OutcomeUnknownError, Transport
from stream_anon.runtime.parts import Parts
from stream_anon.runtime.settings import WorkerSettings
from stream_anon.runtime.worker import Worker

OPTIONS = {
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 1000,
    "transaction.timeout.ms": 6000,
    "metadata.max.age.ms": 1000,
}


class World:
    """Topics of one test, workers in this process, and readers."""

    def __init__(self, bootstrap: str, name: str, client: str = "kafka-python") -> None:
        self.bootstrap, self.name, self.kind = bootstrap, name, client_of(client).transport
        self.input, self.output, self.dead = f"{name}-in", f"{name}-out", f"{name}-dead"
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self.producer = KafkaProducer(bootstrap_servers=bootstrap, reconnect_backoff_max_ms=1000)
        self.transports: list[Transport] = []

    def create(self, partitions: int = 1, **output: str) -> World:
        out = NewTopic(self.output, 1, 1, topic_configs=output or None)
        self.admin.create_topics([NewTopic(self.input, partitions, 1), out, NewTopic(self.dead, 1, 1)])
        return self

    def worker(
        self,
        core: Parts | None = None,
        change: Callable[[Transport], None] = lambda transport: None,
        options: dict[str, Any] | None = None,
        bootstrap: str = "",
        **changes: Any,
    ) -> Worker:
        number = len(self.transports)
        transport = self.kind(
            bootstrap or self.bootstrap,
            self.name,
            self.input,
            transactional_id=f"{self.name}-{number}",
            options={**OPTIONS, **(options or {})},
        )
        change(transport)
        self.transports.append(transport)
        changes = {"dead_letter": self.dead, "delay": None, **changes}
        return Worker(transport, core or parts(), WorkerSettings(self.input, self.output, **changes), Notes())

    def produce(self, *values: bytes | None, partition: int = 0) -> None:
        for value in values:
            key = b"a tombstone needs one" if value is None else None
            self.producer.send(self.input, value=value, key=key, partition=partition)
        self.producer.flush()

    def read(self, topic: str = "", level: str = "read_committed") -> list[dict[str, Any]]:
        reader = KafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level=level, auto_offset_reset="earliest", fetch_max_wait_ms=50
        )
        tp = TopicPartition(topic or self.output, 0)
        reader.assign([tp])
        reader.seek_to_beginning(tp)
        end, found = reader.end_offsets([tp])[tp], []
        until = time.monotonic() + 5
        while reader.position(tp) < end and time.monotonic() < until:
            for records in reader.poll(timeout_ms=200).values():
                found += [json.loads(r.value) for r in records]
        reader.close()
        return found

    def until(self, condition: Callable[[], bool], *workers: Worker, timeout: float = 30.0) -> None:
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "it did not come about"
            for worker in workers:
                worker.step()

    def published(self, count: int, *workers: Worker) -> None:
        """Step until so many records are visible, and no more come after."""
        seen = [0.0, 0]

        def enough() -> bool:
            if time.monotonic() - seen[0] > 0.5:
                seen[:] = [time.monotonic(), len(self.read())]
            return seen[1] >= count

        self.until(enough, *workers)
        for _ in range(10):
            for worker in workers:
                worker.step()
        assert len(self.read()) == count

    def announce_and_leave(self) -> None:
        """A worker announces a group and is gone before it publishes it."""
        worker = self.worker()
        self.until(lambda: any(p.announced for p in worker.holdings.partitions.values()), worker)
        self.leave()

    def leave(self) -> None:
        self.transports[-1].close()

    def committed(self, partition: int = 0) -> OffsetAndMetadata | None:
        reader = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=self.name, isolation_level="read_committed")
        found = reader.committed(TopicPartition(self.input, partition), metadata=True)
        reader.close(autocommit=False)
        return found

    def close(self) -> None:
        for transport in self.transports:
            transport.close()
        self.producer.close()
        self.admin.close()


@pytest.fixture
def client() -> str:
    return "kafka-python"


each_client = pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])


@pytest.fixture
def world(bootstrap: str, name: str, client: str) -> Iterator[World]:
    made = World(bootstrap, name, client)
    yield made
    made.close()


def rows(count: int, start: int = 0) -> list[bytes]:
    return [f"{i:05}".encode() for i in range(start, start + count)]


def notes(worker: Worker) -> Notes:
    assert isinstance(worker._observer, Notes)
    return worker._observer


def quarantine(world: World, worker: Worker) -> dict[int, str]:
    world.until(lambda: bool(notes(worker).quarantined), worker)
    return notes(worker).quarantined


@each_client
def test_eight_partitions_on_one_worker_and_dead_letters(world: World) -> None:
    world.create(8)
    for partition in range(8):
        world.produce(*rows(9, 100 * partition), b"bad SECRET", None, partition=partition)
    worker = world.worker()
    world.published(72, worker)
    letters = world.read(world.dead)
    assert len(letters) == 16
    assert "SECRET" not in json.dumps(letters)
    assert len({record["v"] for record in world.read()}) == 72


def test_a_successor_publishes_what_was_announced(world: World) -> None:
    world.create()
    world.produce(*rows(3))
    world.announce_and_leave()
    assert world.read(level="read_uncommitted") == []
    world.published(3, world.worker())


def test_wiped_metadata_is_a_quarantine(world: World) -> None:
    world.create()
    world.produce(*rows(4))
    world.published(3, world.worker())
    world.leave()
    tool = KafkaConsumer(bootstrap_servers=world.bootstrap, group_id=world.name, enable_auto_commit=False)
    tp = TopicPartition(world.input, 0)
    tool.assign([tp])
    tool.commit({tp: OffsetAndMetadata(0, "", -1)})
    tool.close(autocommit=False)
    worker = world.worker()
    assert quarantine(world, worker) == {0: "empty"}
    assert not worker.ready
    assert len(world.read()) == 3


def test_a_topic_made_anew_is_a_quarantine(world: World) -> None:
    world.create()
    world.produce(*rows(4))
    world.published(3, world.worker())
    world.leave()
    world.admin.delete_topics([world.input])
    time.sleep(1)
    world.admin.create_topics([NewTopic(world.input, 1, 1)])
    world.produce(*rows(9))
    # A broker that forgot the offsets with the topic leaves nothing to be misplaced; both are refused.
    assert quarantine(world, world.worker())[0] in ("misplaced", "unproved")
    assert len(world.read()) == 3


@each_client
def test_a_partition_added_under_load_is_read_from_its_beginning(world: World) -> None:
    from kafka.admin import NewPartitions

    world.create()
    worker = world.worker()
    world.produce(*rows(3))
    world.published(3, worker)
    world.until(lambda: worker.ownership.known == 1, worker)
    world.admin.create_partitions({world.input: NewPartitions(2)})
    time.sleep(0.5)
    producer = KafkaProducer(bootstrap_servers=world.bootstrap)
    for value in rows(3, 50):
        producer.send(world.input, value=value, partition=1)
    producer.close()
    world.produce(*rows(3, 10))
    world.published(9, worker)
    assert notes(worker).quarantined == {}


def test_a_member_lost_to_retention_withdraws_the_group(world: World) -> None:
    world.create()
    world.produce(*rows(3))
    world.announce_and_leave()
    world.admin.delete_records({TopicPartition(world.input, 0): 2})
    worker = world.worker()
    world.until(lambda: ("withdrawn", "member_missing", 1, 3) in notes(worker).seen, worker)
    world.produce(*rows(3, 10))
    world.published(3, worker)
    assert {record["v"] for record in world.read(level="read_uncommitted")} == {"00010", "00011", "00012"}


def test_a_policy_changed_between_announcing_and_publishing(world: World) -> None:
    world.create()
    world.produce(*rows(3))
    world.announce_and_leave()
    worker = world.worker(parts(salt=b"policy two"))
    world.until(lambda: ("withdrawn", "policy_changed", 1, 3) in notes(worker).seen, worker)
    assert world.read(level="read_uncommitted") == []


@each_client
@pytest.mark.parametrize("lost", ["request", "response"])
def test_a_commit_without_an_answer(world: World, lost: str) -> None:
    def losing(transport: Transport) -> None:
        commit, left = transport.commit, iter(range(2, -1, -1))

        def lose() -> None:
            at = next(left, None)
            if at != 0 or lost == "response":
                commit()
            if at == 0:
                raise OutcomeUnknownError("no answer")

        transport.commit = lose  # type: ignore[method-assign]

    world.create()
    worker = world.worker(change=losing)
    world.until(lambda: worker.holdings.partitions != {}, worker)
    world.produce(*rows(6))
    world.published(6, worker)
    assert ("transaction", "unknown") in notes(worker).seen


@each_client
def test_a_zombie_of_an_evicted_generation_changes_nothing(world: World) -> None:
    """The first worker stands still past its poll interval with a group announced, then goes on as if nothing were."""
    world.create()
    world.produce(*rows(4))
    zombie = world.worker(options={"max.poll.interval.ms": 6000})
    world.until(lambda: any(p.announced for p in zombie.holdings.partitions.values()), zombie)
    time.sleep(7)
    successor = world.worker()
    world.published(3, successor)
    world.produce(*rows(2, 10))
    world.published(6, successor)
    before = world.committed()
    zombie.transact()
    assert ("transaction", "aborted") in notes(zombie).seen
    assert world.committed() == before
    assert len(world.read()) == 6


@each_client
def test_there_and_back_again(world: World) -> None:
    """All goes to another worker and comes back while the first stands still: its state is stale, and it knows."""
    world.create()
    world.produce(*rows(5))
    first = world.worker(core=parts(k=6), options={"max.poll.interval.ms": 6000})
    world.until(lambda: first.holdings.waiting == 5, first)
    first.transact()
    time.sleep(7)
    second = world.worker()
    world.published(3, second)
    second.drain()
    second._transport.close()
    world.produce(*rows(4, 10))
    world.published(9, first)
    values = [record["v"] for record in world.read(level="read_uncommitted")]
    assert len(values) == len(set(values)) == 9


def test_a_compacted_output_is_refused(world: World) -> None:
    world.create(**{"cleanup.policy": "compact"})
    with pytest.raises(StreamAnonError, match=r"cleanup\.policy"):
        world.worker().run()


def test_a_record_too_large_for_the_output(world: World) -> None:
    world.create(**{"max.message.bytes": "3000"})
    worker = world.worker()
    worker.ownership.check_topics()
    world.produce(b"0", b"x" * 4000, b"1", b"2", b"3", b"4")
    world.published(3, worker)
    assert [letter["code"] for letter in world.read(world.dead)] == ["oversized"]


@each_client
def test_markers_and_aborted_input_do_not_hold_the_offset_back(world: World) -> None:
    world.create()
    writer = KafkaProducer(bootstrap_servers=world.bootstrap, transactional_id=f"{world.name}-writer")
    writer.init_transactions()
    for kept in (True, False, True):
        writer.begin_transaction()
        for value in rows(3, 0 if kept else 900):
            writer.send(world.input, value=value, partition=0)
        if kept:
            writer.commit_transaction()
        else:
            writer.flush()
            writer.abort_transaction()
    writer.close()
    worker = world.worker()
    world.published(6, worker)
    world.until(lambda: worker.holdings.partitions[0].ledger.low == 12, worker)
    assert not [record for record in world.read() if record["v"].startswith("009")]


@each_client
def test_tls_and_scram(world: World, local_broker: LocalBroker) -> None:
    if world.bootstrap != local_broker.bootstrap:
        pytest.skip("the broker under test is not ours")
    world.create()
    world.produce(*rows(3))
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": local_broker.user,
        "sasl.password": local_broker.password,
        "ssl.ca.location": str(local_broker.certificate),
        "compression.type": "gzip",
    }
    world.published(3, world.worker(options=options, bootstrap=local_broker.sasl_bootstrap))


def test_a_broker_restart_is_survived(name: str, client: str) -> None:
    with LocalBroker() as broker:
        world = World(broker.bootstrap, name, client).create()
        try:
            worker = world.worker()
            world.produce(*rows(3))
            world.published(3, worker)
            broker.restart(kill=True)
            world.produce(*rows(3, 10))
            world.published(6, worker)
        finally:
            world.close()
