"""Topics in memory, workers on a clock of their own, and what they told: the world of the fast tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from fifo import Core, fifo_core

from stream_anon.observe.observer import Observer
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import MemoryBroker
from stream_anon.worker.loop import Worker
from stream_anon.worker.settings import WorkerSettings


class Notes(Observer):
    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []
        self.quarantined: dict[int, str] = {}
        self.missed_rows = 0

    def withdrawn(self, reason: str, groups: int, records: int) -> None:
        self.seen.append(("withdrawn", reason, groups, records))

    def suppressed(self, reason: str, records: int) -> None:
        self.seen.append(("suppressed", reason, records))

    def rejected(self, code: str, records: int) -> None:
        self.seen.append(("rejected", code, records))

    def transaction(self, result: str, seconds: float) -> None:
        self.seen.append(("transaction", result))

    def assigned(self, partitions: int, quarantined: dict[int, str]) -> None:
        self.quarantined = quarantined

    def missed(self, records: int) -> None:
        self.missed_rows += records

    def violated(self) -> None:
        self.seen.append(("violated",))


@dataclass
class World:
    partitions: int = 1
    ledger: str | None = None
    broker: MemoryBroker = field(init=False)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.broker = MemoryBroker("in", partitions=self.partitions)
        self.broker.create_topic("out")
        self.broker.create_topic("dead")
        if self.ledger is not None:
            self.broker.create_topic(self.ledger, self.partitions, "compact")

    def clock(self) -> float:
        return self.now

    def worker(self, name: str = "w", core: Core | None = None, **changes: object) -> Worker:
        usual = {"dead_letter": "dead", "delay": None, "ledger": self.ledger}
        settings = WorkerSettings("in", "out", **{**usual, **changes})  # type: ignore[arg-type]
        transport = MemoryTransport(self.broker, name)
        return Worker(transport, core or fifo_core(), settings, Notes(), clock=self.clock)

    def go(self, worker: Worker, rounds: int = 6, seconds: float = 0.3) -> Notes:
        for _ in range(rounds):
            worker.step()
            self.now += seconds
        notes = worker._observer
        assert isinstance(notes, Notes)
        return notes

    def produce(self, *values: bytes | None, partition: int = 0) -> None:
        for value in values:
            self.broker.produce("in", partition, value)

    def out(self, committed: bool = True, topic: str = "out") -> list[dict[str, object]]:
        return [json.loads(e.value or b"") for e in self.broker.read(topic, committed)]

    def values(self, committed: bool = True) -> list[object]:
        return sorted(str(record["v"]) for record in self.out(committed))


def rows(count: int) -> list[bytes]:
    return [f"{i:05}".encode() for i in range(count)]


def announce_and_leave(world: World) -> None:
    """A worker announces a group and is gone before it publishes it."""
    worker = world.worker()
    for _ in range(20):
        worker.step()
        if any(p.announced for p in worker.state.partitions.values()):
            break
        world.now += 0.3
    world.broker.leave("w")


def notes_of(worker: Worker) -> Notes:
    assert isinstance(worker._observer, Notes)
    return worker._observer


def publish_and_leave(world: World) -> None:
    """Four records, a group of three published, and the worker gone."""
    world.produce(*rows(4))
    worker = world.worker()
    world.go(worker)
    world.broker.leave("w")
