"""Topics on a real broker, workers in this process, and readers: the world of the tests that need the real thing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fifo import Core, fifo_core
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from memory_world import Notes
from test_build import POLICY

from stream_anon.kafka.clients import client_of
from stream_anon.kafka.clients.kafka_python.topics import await_topics
from stream_anon.kafka.transport import Transport
from stream_anon.worker.loop import Worker
from stream_anon.worker.settings import WorkerSettings

OPTIONS = {
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 1000,
    "transaction.timeout.ms": 6000,
    "metadata.max.age.ms": 1000,
}


each_client = pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka"])
"""For the rules that a client could break; whatever else is the worker's alone is tested with one of them."""


class World:
    """Topics of one test, workers in this process, and readers."""

    def __init__(self, bootstrap: str, name: str, client: str = "kafka-python") -> None:
        self.bootstrap, self.name, self.client = bootstrap, name, client
        self.input, self.output, self.dead = f"{name}-in", f"{name}-out", f"{name}-dead"
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self.producer = KafkaProducer(bootstrap_servers=bootstrap, reconnect_backoff_max_ms=1000)
        self.transports: list[Transport] = []
        self.ledger: str | None = None

    def keep_ledgers(self, partitions: int = 1, **settings: str) -> World:
        """Create a ledger topic, and let workers use it."""
        self.ledger = f"{self.name}-ledger"
        made = NewTopic(self.ledger, partitions, 1, topic_configs={"cleanup.policy": "compact", **settings})
        self.admin.create_topics([made])
        await_topics(self.admin, [self.ledger])
        return self

    def create(self, partitions: int = 1, source: dict[str, str] | None = None, **output: str) -> World:
        out = NewTopic(self.output, 1, 1, topic_configs=output or None)
        into = NewTopic(self.input, partitions, 1, topic_configs=source)
        self.admin.create_topics([into, out, NewTopic(self.dead, 1, 1)])
        await_topics(self.admin, [self.input, self.output, self.dead])
        return self

    def worker(
        self,
        core: Core | None = None,
        change: Callable[[Transport], None] = lambda transport: None,
        options: dict[str, Any] | None = None,
        bootstrap: str = "",
        **changes: Any,
    ) -> Worker:
        number = len(self.transports)
        transport = client_of(self.client).transport(
            bootstrap or self.bootstrap,
            self.name,
            self.input,
            transactional_id=f"{self.name}-{number}",
            options={**OPTIONS, **(options or {})},
        )
        change(transport)
        self.transports.append(transport)
        changes = {"dead_letter": self.dead, "delay": None, "ledger": self.ledger, **changes}
        return Worker(transport, core or fifo_core(), WorkerSettings(self.input, self.output, **changes), Notes())

    def produce(self, *values: bytes | None, partition: int = 0) -> None:
        for value in values:
            key = b"a tombstone needs one" if value is None else None
            self.producer.send(self.input, value=value, key=key, partition=partition)
        self.producer.flush()

    def read(self, topic: str = "", level: str = "read_committed") -> list[dict[str, Any]]:
        return [json.loads(value) for _, value in self.records(topic, level)]

    def records(self, topic: str = "", level: str = "read_committed") -> list[tuple[int, bytes]]:
        """Offsets and values of a topic's first partition."""
        reader = KafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level=level, auto_offset_reset="earliest", fetch_max_wait_ms=50
        )
        tp = TopicPartition(topic or self.output, 0)
        reader.assign([tp])
        reader.seek_to_beginning(tp)
        end, found = reader.end_offsets([tp])[tp], []
        until = time.monotonic() + 30
        while reader.position(tp) < end and time.monotonic() < until:
            for records in reader.poll(timeout_ms=200, max_records=5_000).values():
                found += [(r.offset, r.value) for r in records]
        reader.close()
        return found

    def until(self, condition: Callable[[], bool], *workers: Worker, timeout: float = 180.0) -> None:
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "it did not come about"
            for worker in workers:
                worker.step()
            if not workers:
                time.sleep(0.05)

    def at_least(self, count: int, *workers: Worker) -> None:
        """Step until so many records are visible; looking costs more than a step, so it is done now and then."""
        seen = [0.0, 0]

        def enough() -> bool:
            if time.monotonic() - seen[0] > 0.5:
                seen[:] = [time.monotonic(), len(self.read())]
            return seen[1] >= count

        self.until(enough, *workers)

    def published(self, count: int, *workers: Worker) -> None:
        """Step until so many records are visible, and no more come after."""
        self.at_least(count, *workers)
        for _ in range(10):
            for worker in workers:
                worker.step()
        assert len(self.read()) == count

    def announce_and_leave(self) -> None:
        """A worker announces a group and is gone before it publishes it."""
        worker = self.worker()
        self.until(lambda: any(p.announced for p in worker.state.partitions.values()), worker)
        self.leave()

    def deserted(self) -> None:
        """Wait until the group has no member: whoever stood still was evicted."""
        self.until(lambda: not self.admin.describe_groups([self.name])[self.name]["members"])

    def partitions(self, count: int) -> None:
        """Wait until the broker shows so many partitions of the input; 0 for no such topic."""

        def shown() -> bool:
            found = self.admin.describe_topics([self.input])[0]
            return len(found["partitions"] if found["error_code"] == 0 else ()) == count

        self.until(shown)

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


def rows(count: int, start: int = 0) -> list[bytes]:
    return [f"{i:05}".encode() for i in range(start, start + count)]


def notes(worker: Worker) -> Notes:
    assert isinstance(worker._observer, Notes)
    return worker._observer


def quarantine(world: World, worker: Worker) -> dict[int, str]:
    world.until(lambda: bool(notes(worker).quarantined), worker)
    return notes(worker).quarantined


def policy_on(world: World, folder: Path) -> Path:
    """A policy file for the topics of a world."""
    text = POLICY.replace("localhost:1", world.bootstrap).replace("group: g", f"group: {world.name}")
    text = text.replace("input: in", f"input: {world.input}").replace("output: out", f"output: {world.output}")
    text = text.replace(
        "dead_letter: dead", f"dead_letter: {world.dead}, client: {world.client}, options: {json.dumps(OPTIONS)}"
    )
    file = folder / "policy.yaml"
    file.write_text(text)
    return file
