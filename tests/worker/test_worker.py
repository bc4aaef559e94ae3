"""The loop, step by step on a broker in memory: each rule of the protocol has a test that fails without it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from fifo import Fifo, Group, Outcome, Rows, parts

from stream_anon.errors import PrivacyViolation, StreamAnonError
from stream_anon.io.memory import MemoryTransport
from stream_anon.io.memory_log import MemoryBroker
from stream_anon.io.transport import Committed
from stream_anon.observe.observer import Observer
from stream_anon.runtime.codec import LIMIT
from stream_anon.runtime.parts import Parts
from stream_anon.runtime.settings import WorkerSettings
from stream_anon.runtime.worker import Worker


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
    broker: MemoryBroker = field(init=False)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.broker = MemoryBroker("in", partitions=self.partitions)
        self.broker.create_topic("out")
        self.broker.create_topic("dead")

    def clock(self) -> float:
        return self.now

    def worker(self, name: str = "w", core: Parts | None = None, **changes: object) -> Worker:
        settings = WorkerSettings("in", "out", **{"dead_letter": "dead", "delay": None, **changes})  # type: ignore[arg-type]
        transport = MemoryTransport(self.broker, name)
        return Worker(transport, core or parts(), settings, Notes(), clock=self.clock)

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


@pytest.fixture
def world() -> World:
    return World()


def crash_inside(world: World, worker: Worker, operation: str) -> None:
    """Let the process end just before an operation, with its transaction open."""

    class Crash(BaseException):
        pass

    def before(name: str) -> None:
        if name == operation:
            raise Crash

    worker._transport._before = before  # type: ignore[attr-defined]
    for _ in range(20):
        try:
            worker.step()
        except Crash:
            break
        world.now += 0.3
    else:
        raise AssertionError(f"{operation} was never reached")
    world.broker.leave("w")
    world.broker.expire("w")


def test_records_are_published_once_and_in_whole_groups(world: World) -> None:
    world.produce(*rows(9))
    world.go(world.worker())
    assert world.values() == [f"{i:05}" for i in range(9)]
    assert world.broker.committed[0].offset == 9


def test_a_group_is_announced_before_any_of_it_is_visible(world: World) -> None:
    worker = world.worker()
    world.produce(*rows(3))
    seen = []
    for _ in range(6):
        worker.step()
        world.now += 0.3
        seen.append(
            (len(world.out(committed=False)), world.broker.committed[0].offset if world.broker.committed else None)
        )
    first_visible = next(i for i, (records, _) in enumerate(seen) if records)
    assert seen[first_visible - 1] == (0, 3), "the offsets were durable while nothing was visible"


@pytest.mark.parametrize("operation", ["send_offsets", "send", "commit"])
def test_a_successor_publishes_the_same_groups(world: World, operation: str) -> None:
    world.produce(*rows(7))
    first = world.worker()
    world.go(first, rounds=1)
    crash_inside(world, first, operation)
    world.go(world.worker("x"), rounds=8)
    groups = {}
    for record in world.out(committed=False):
        groups.setdefault(record["v"], set()).add(record["_anon"]["group"])  # type: ignore[index]
    assert all(len(seen) == 1 for seen in groups.values())
    assert world.values() == [f"{i:05}" for i in range(6)]


@pytest.mark.parametrize("lost", ["request", "response"])
def test_a_commit_without_an_answer_is_settled_by_the_ledgers(world: World, lost: str) -> None:
    worker = world.worker()
    world.produce(*rows(6))
    worker.step()
    worker._transport.lose = lost  # type: ignore[attr-defined]
    notes = world.go(worker, rounds=8)
    assert ("transaction", "unknown") in notes.seen
    assert world.values() == [f"{i:05}" for i in range(6)]


def test_members_below_low_are_fetched_by_offset(world: World) -> None:
    world.produce(*rows(3))
    worker = world.worker()
    for _ in range(20):
        worker.step()
        if worker.holdings.partitions[0].announced:
            break
        world.now += 0.3
    assert world.broker.committed[0].offset == 3, "all members are below the committed offset"
    world.broker.leave("w")
    world.go(world.worker("x"))
    assert len(world.out()) == 3


def announced_then_gone(world: World) -> None:
    worker = world.worker()
    for _ in range(20):
        worker.step()
        if any(p.announced for p in worker.holdings.partitions.values()):
            break
        world.now += 0.3
    world.broker.leave("w")


def test_a_group_with_a_missing_member_is_withdrawn_whole(world: World) -> None:
    world.produce(*rows(3))
    announced_then_gone(world)
    world.broker.topics["in"][0].entries[1].gone = True
    notes = world.go(world.worker("x"))
    assert ("withdrawn", "member_missing", 1, 3) in notes.seen
    assert world.out(committed=False) == []


def test_a_changed_policy_withdraws_what_was_announced(world: World) -> None:
    world.produce(*rows(3))
    announced_then_gone(world)
    notes = world.go(world.worker("x", parts(salt=b"policy two")))
    assert ("withdrawn", "policy_changed", 1, 3) in notes.seen
    assert world.out(committed=False) == []


def test_other_bytes_under_the_same_fingerprint_are_withdrawn(world: World) -> None:
    world.produce(*rows(3))
    announced_then_gone(world)
    one, two = parts(), parts(salt=b"policy two")
    mixed = Parts(one.encode, one.engine, two.release, one.fingerprint, one.key)
    notes = world.go(world.worker("x", mixed))
    assert ("withdrawn", "digest_differs", 1, 3) in notes.seen
    assert world.out(committed=False) == []


def committed(world: World) -> None:
    world.produce(*rows(4))
    worker = world.worker()
    world.go(worker)
    world.broker.leave("w")


def test_wiped_metadata_is_a_quarantine(world: World) -> None:
    committed(world)
    world.broker.committed[0] = Committed(0, "")
    worker = world.worker("x")
    notes = world.go(worker)
    assert notes.quarantined == {0: "empty"}
    assert not worker.ready
    assert len(world.out()) == 3


def test_a_reset_offset_is_a_quarantine(world: World) -> None:
    committed(world)
    world.broker.committed[0] = Committed(0, world.broker.committed[0].metadata)
    assert world.go(world.worker("x")).quarantined == {0: "moved"}


def test_a_topic_made_anew_is_a_quarantine(world: World) -> None:
    committed(world)
    world.broker.create_topic("in", 1)
    world.produce(*rows(9))
    assert world.go(world.worker("x")).quarantined == {0: "misplaced"}
    assert len(world.out()) == 3


def test_another_secret_is_a_quarantine(world: World) -> None:
    committed(world)
    one = parts()
    other = Parts(one.encode, one.engine, one.release, one.fingerprint, b"another secret")
    assert world.go(world.worker("x", other)).quarantined == {0: "unreadable"}


@pytest.mark.parametrize(("start", "published"), [(None, 3), ("earliest", 6), ("latest", 3)])
def test_expired_offsets_are_not_read_again_unless_told(world: World, start: str | None, published: int) -> None:
    committed(world)
    world.broker.committed.clear()
    notes = world.go(world.worker("x", start=start))
    assert notes.quarantined == ({} if start else {0: "unproved"})
    assert len(world.out()) == published


def test_a_partition_added_later_is_read_from_its_beginning() -> None:
    world = World(partitions=2)
    world.produce(*rows(3))
    worker = world.worker()
    world.go(worker, rounds=30)
    assert worker.ownership.known == 2
    world.broker.add_partition("in")
    world.produce(*[f"new{i}".encode() for i in range(3)], partition=2)
    world.broker.rebalance()
    notes = world.go(worker)
    assert notes.quarantined == {}
    assert len(world.out()) == 6


def test_one_expired_partition_among_others_is_a_quarantine() -> None:
    world = World(partitions=2)
    world.produce(*rows(3))
    world.produce(*rows(3), partition=1)
    world.go(world.worker(), rounds=30)
    world.broker.leave("w")
    del world.broker.committed[1]
    assert world.go(world.worker("x")).quarantined == {1: "unproved"}


def test_gaps_do_not_hold_the_offset_back(world: World) -> None:
    world.produce(*rows(8))
    for gone in (0, 4, 6, 7):
        world.broker.topics["in"][0].entries[gone].gone = True
    world.go(world.worker(core=parts(k=4)), rounds=12)
    assert world.broker.committed[0].offset == 8
    assert len(world.out()) == 4


def test_retention_under_the_position_is_survived(world: World) -> None:
    committed(world)
    world.produce(*rows(6))
    world.broker.topics["in"][0].start = 7
    notes = world.go(world.worker("x"), rounds=10)
    assert notes.quarantined == {}
    assert len(world.out()) == 6


def test_retention_that_overtakes_a_running_worker_is_survived_and_told(world: World) -> None:
    world.produce(*rows(5))
    worker = world.worker()
    world.go(worker, rounds=8)
    worker._transport.pause([0])
    world.produce(*rows(9))
    world.broker.topics["in"][0].start = 10
    worker._transport.resume([0])
    notes = world.go(worker, rounds=10)
    assert ("suppressed", "retention", 2) in notes.seen
    assert len(world.out()) == 6


def test_a_log_shorter_than_the_committed_offset_is_a_quarantine(world: World) -> None:
    committed(world)
    del world.broker.topics["in"][0].entries[2:]
    assert world.go(world.worker("x")).quarantined == {0: "beyond"}


def test_a_compacted_output_is_refused(world: World) -> None:
    world.broker.create_topic("out", cleanup_policy="compact")
    with pytest.raises(StreamAnonError, match=r"cleanup\.policy"):
        world.worker().run()


def test_dead_letters_come_with_the_offsets_and_without_the_payload(world: World) -> None:
    world.produce(b"bad SECRET", None, *rows(3))
    world.go(world.worker())
    letters = world.out(topic="dead")
    assert [(x["code"], x["offset"]) for x in letters] == [("not_json", 0), ("tombstone", 1)]
    assert b"SECRET" not in b"".join(e.value or b"" for e in world.broker.read("dead", False))
    assert world.broker.committed[0].offset == 5


def test_a_record_too_large_is_rejected_before_its_group_is_announced(world: World) -> None:
    worker = world.worker()
    worker.holdings.largest = 200
    world.produce(b"0", b"x" * 300, b"1", b"2", b"3", b"4")
    notes = world.go(worker, rounds=8)
    assert ("rejected", "oversized", 1) in notes.seen
    assert len(world.out()) == 3
    assert [x["offset"] for x in world.out(topic="dead")] == [1]


def test_rows_without_company_are_suppressed_at_the_deadline(world: World) -> None:
    world.produce(*rows(2))
    notes = world.go(world.worker(core=parts(delay=1.0)), rounds=12)
    assert ("suppressed", "deadline", 2) in notes.seen
    assert world.broker.committed[0].offset == 2


def test_nothing_is_suppressed_before_the_partition_is_read_again(world: World) -> None:
    world.produce(*rows(5))
    world.go(world.worker(core=parts(k=6)))
    world.broker.leave("w")
    world.produce(b"last")
    worker = world.worker("x", parts(k=6, delay=0.1), poll_records=1)
    notes = world.go(worker, rounds=5, seconds=1.0)
    assert not [seen for seen in notes.seen if seen[0] == "suppressed"]
    world.go(worker, rounds=5, seconds=0.0)
    assert not worker.holdings.formed or len(world.out()) == 6


def test_a_stop_leaves_nothing_announced_and_suppresses_nothing(world: World) -> None:
    world.produce(*rows(5))
    worker = world.worker()
    world.go(worker, rounds=2)
    worker.drain()
    worker._transport.close()
    assert len(world.out()) == 3
    assert world.broker.committed[0].offset == 3
    world.produce(b"one more")
    world.go(world.worker("x"))
    assert len(world.out()) == 6


def test_a_stop_without_time_still_leaves_nothing_announced(world: World) -> None:
    world.produce(*rows(9))
    worker = world.worker(drain_seconds=0.0)
    announced = worker.holdings.partitions
    while not any(partition.announced for partition in announced.values()):
        worker.step()
        world.now += 0.3
    world.produce(*rows(3))
    worker.step()
    worker.drain()
    assert not any(partition.announced for partition in announced.values())
    assert len(world.out()) in (9, 12)
    worker._transport.close()
    world.go(world.worker("x"))
    assert len(world.out()) == 12


class Hoard(Fifo):
    """Lets a random half of the rows go at once and the rest at their deadline: the worst for a ledger."""

    def push(self, rows: Rows, now: float) -> Outcome:
        chance = np.random.default_rng(int(rows.ref[0, 1])).random(len(rows)) < 0.5
        half, out = rows.take(chance), Outcome()
        many = len(half) // self.k * self.k
        out.groups = [Group(half.take(slice(i, i + self.k)), self.salt) for i in range(0, many, self.k)]
        self._keep(rows.take(~chance))
        self._keep(half.take(slice(many, None)))
        return out

    def tick(self, now: float) -> Outcome:
        assert self.delay is not None
        out = Outcome()
        while self.rows is not None and len(self.rows) >= self.k and now - self.rows.arrived[0] >= self.delay:
            out.groups.append(Group(self.rows.take(slice(0, self.k)), self.salt))
            self.rows = self.rows.take(slice(self.k, None))
        return out


def test_a_burst_that_would_overflow_the_ledger_pauses_and_drains(world: World) -> None:
    world.produce(*rows(60_000))
    core = replace(parts(), engine=lambda: Hoard(5, 4.0, b"policy one"))
    worker = world.worker(core=core, delay=5.0)
    longest, paused = 0, False
    for _ in range(2_000):
        worker.step()
        world.now += 0.05
        paused = paused or bool(worker._paused)
        longest = max([longest, *(len(c.metadata) for c in world.broker.committed.values())])
        if len(world.broker.topics["out"][0].entries) > 60_000:
            break
    assert paused
    assert 0.7 * LIMIT < longest <= LIMIT + 1
    assert len(world.values()) == len(set(world.values())) == 60_000
    assert worker._observer.missed_rows == 0  # type: ignore[attr-defined]


def test_the_order_of_groups_follows_their_ids(world: World) -> None:
    world.produce(*rows(30))
    world.go(world.worker())
    ids = [record["_anon"]["group"] for record in world.out()]  # type: ignore[index]
    assert ids[0:3] == [ids[0]] * 3
    assert ids == sorted(ids)


def test_scope_partition_never_mixes() -> None:
    world = World(partitions=2)
    worker = world.worker(apart=True)
    world.produce(b"a1", b"a2")
    world.produce(b"b1", b"b2", partition=1)
    world.go(worker)
    assert world.out() == []
    world.produce(b"a3")
    world.go(worker)
    assert world.values() == ["a1", "a2", "a3"]


def test_a_group_stopped_at_the_gate_is_told_and_ends_the_worker() -> None:
    class Careless(Fifo):
        def push(self, rows: Rows, now: float) -> Outcome:
            raise PrivacyViolation("a group of 1 row")

    world = World()
    worker = world.worker(core=replace(parts(), engine=lambda: Careless(3, None, b"")))
    world.produce(*(json.dumps({"v": i}).encode() for i in range(3)))
    with pytest.raises(PrivacyViolation):
        worker.run()
    assert ("violated",) in world_notes(worker).seen


def test_what_is_refused_while_a_transaction_runs_is_told_by_the_next() -> None:
    world = World()
    worker = world.worker()
    world.go(worker, 2)
    for _ in range(2):
        world.produce(None)
        world.go(worker, 1, seconds=0.0)  # the second waits for the tick
    world.now += 0.3
    world.produce(None)
    world.go(worker, 4)
    assert [letter["offset"] for letter in world.out(topic="dead")] == [0, 1, 2]


def world_notes(worker: Worker) -> Notes:
    assert isinstance(worker._observer, Notes)
    return worker._observer
