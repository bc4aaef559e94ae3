"""The loop, step by step on a broker in memory: each rule of the protocol has a test that fails without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from fifo import Core, Fifo, Group, Outcome, Rows, fifo_core
from memory_world import Notes, World, announce_and_leave, notes_of, publish_and_leave, rows

from stream_anon.errors import PrivacyViolation, StreamAnonError
from stream_anon.stream.outcome import always
from stream_anon.worker.ledger.budget import INLINE
from stream_anon.worker.loop import Worker


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
        if worker.state.partitions[0].announced:
            break
        world.now += 0.3
    assert world.broker.committed[0].offset == 3, "all members are below the committed offset"
    world.broker.leave("w")
    world.go(world.worker("x"))
    assert len(world.out()) == 3


def test_a_group_with_a_missing_member_is_withdrawn_whole(world: World) -> None:
    world.produce(*rows(3))
    announce_and_leave(world)
    world.broker.topics["in"][0].entries[1].gone = True
    notes = world.go(world.worker("x"))
    assert ("withdrawn", "member_missing", 1, 3) in notes.seen
    assert world.out(committed=False) == []


def test_other_bytes_under_the_same_fingerprint_are_withdrawn(world: World) -> None:
    world.produce(*rows(3))
    announce_and_leave(world)
    one, two = fifo_core(), fifo_core(salt=b"policy two")
    mixed = Core(one.encode, one.engine, two.release, one.write, one.fingerprint, one.key)
    notes = world.go(world.worker("x", mixed))
    assert ("withdrawn", "digest_differs", 1, 3) in notes.seen
    assert world.out(committed=False) == []


def test_gaps_do_not_hold_the_offset_back(world: World) -> None:
    world.produce(*rows(8))
    for gone in (0, 4, 6, 7):
        world.broker.topics["in"][0].entries[gone].gone = True
    world.go(world.worker(core=fifo_core(k=4)), rounds=12)
    assert world.broker.committed[0].offset == 8
    assert len(world.out()) == 4


def test_retention_under_the_position_is_survived(world: World) -> None:
    publish_and_leave(world)
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


def test_a_compacted_output_is_refused(world: World) -> None:
    world.broker.create_topic("out", cleanup_policy="compact")
    with pytest.raises(StreamAnonError, match=r"cleanup\.policy"):
        world.worker().run()


class Hoard(Fifo):
    """Lets a random half of the rows go at once and the rest at their deadline: the worst for a ledger."""

    def push(self, rows: Rows, now: float, *, more: Callable[[], bool] = always) -> Outcome:
        chance = np.random.default_rng(int(rows.ref[0, 1])).random(len(rows)) < 0.5
        half, out = rows.take(chance), Outcome()
        many = len(half) // self.k * self.k
        out.groups = [Group(half.take(slice(i, i + self.k)), self.salt) for i in range(0, many, self.k)]
        self._keep(rows.take(~chance))
        self._keep(half.take(slice(many, None)))
        return out

    def tick(self, now: float, *, more: Callable[[], bool] = always) -> Outcome:
        assert self.delay is not None
        out = Outcome()
        while self.rows is not None and len(self.rows) >= self.k and now - self.rows.arrived[0] >= self.delay:
            out.groups.append(Group(self.rows.take(slice(0, self.k)), self.salt))
            self.rows = self.rows.take(slice(self.k, None))
        return out


def test_a_burst_that_would_overflow_the_ledger_pauses_and_drains(world: World) -> None:
    world.produce(*rows(60_000))
    hoarding = replace(fifo_core(), engine=lambda: Hoard(5, 4.0, b"policy one"))
    worker = world.worker(core=hoarding, delay=5.0)
    longest, paused = 0, False
    for _ in range(2_000):
        worker.step()
        world.now += 0.05
        paused = paused or bool(worker.throttle.paused)
        longest = max([longest, *(len(c.metadata) for c in world.broker.committed.values())])
        if len(world.broker.topics["out"][0].entries) > 60_000:
            break
    world.go(worker, rounds=40, seconds=0.05)  # markers are entries too
    assert paused
    assert 0.7 * INLINE.limit < longest <= INLINE.limit + 1
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
        def push(self, rows: Rows, now: float, *, more: Callable[[], bool] = always) -> Outcome:
            raise PrivacyViolation("a group of 1 row")

    world = World()
    worker = world.worker(core=replace(fifo_core(), engine=lambda: Careless(3, None, b"")))
    world.produce(*(json.dumps({"v": i}).encode() for i in range(3)))
    with pytest.raises(PrivacyViolation):
        worker.run()
    assert ("violated",) in notes_of(worker).seen


def test_the_lag_of_a_paused_partition_is_asked_for() -> None:
    """A client does not hear of records it does not read."""

    class Lags(Notes):
        last = 0

        def lag(self, partition: int, records: int) -> None:
            self.last = records

    world = World()
    worker = world.worker(core=fifo_core(k=99), most_waiting=5)
    worker._reporter._observer = lags = Lags()
    world.produce(*rows(10))
    world.go(worker)
    assert set(worker.throttle.paused) == {0}
    world.produce(*rows(30))
    world.go(worker, rounds=10)
    assert lags.last == 30


def test_under_load_a_transaction_goes_on_while_more_is_read(world: World) -> None:
    world.produce(*rows(30))
    worker = world.worker(poll_records=3)
    while len(worker.state.formed) < 3:
        worker.step()
        world.now += 0.3
    assert worker._in_flight is not None
    assert worker.state.partitions[0].position >= 9
    assert not world.out(False), "in memory nothing is sent before it is waited for"
    world.go(worker, rounds=40)
    assert len(world.out()) == 30


def test_a_rebalance_waits_for_the_transaction_under_way(world: World) -> None:
    world.produce(*rows(30))
    worker = world.worker(poll_records=3)
    while worker._in_flight is None:
        worker.step()
        world.now += 0.3
    world.broker.rebalance({"w": frozenset()})
    world.go(worker, rounds=2)
    assert worker._in_flight is None
    assert not worker.state.partitions
    world.broker.rebalance({"w": frozenset({0})})
    world.go(worker, rounds=40)
    assert len(world.out()) == 30
    assert len(world.out(False)) == 30


def test_a_restored_partition_has_no_room_before_it_was_read_again(world: World) -> None:
    world.produce(*rows(3_000))
    world.go(world.worker(core=fifo_core(k=5_000)))
    world.broker.leave("w")
    worker = world.worker("x", core=fifo_core(k=5_000), poll_records=100)
    while not worker.state.partitions:
        worker.step()
    partition = worker.state.partitions[0]
    assert not partition.caught_up
    assert partition.text is not None
    assert partition.window >= len(partition.text.metadata)


def done(worker: Worker, end: int) -> bool:
    """Whether every partition was read to its end, and what could be published was."""
    partitions = worker.state.partitions.values()
    return bool(partitions) and all(p.position == end for p in partitions) and not worker.state.unpublished


@pytest.mark.parametrize("keep", [0, 4_000], ids=["neighbours", "scattered"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_poll_brings_no_more_than_the_ledgers_can_announce(partitions: int, keep: int) -> None:
    """Else groups pile up from round to round, until reading has to stop for them."""
    world = World(partitions=partitions)
    for number in range(partitions):
        world.produce(*rows(6_000), partition=number)
    worker, most = world.worker(core=fifo_core(k=2, keep=keep)), 0
    while not done(worker, 6_000):
        world.go(worker, rounds=1)
        most = max(most, worker.state.waiting)
        assert not worker.throttle.paused
        held = 2 * len(worker.state.formed)
        assert held * INLINE.per_row < 1.6 * partitions * INLINE.limit, "those of one transaction, and of the next"
    assert len(world.out()) >= partitions * 6_000 - keep - 1
    assert most > 1_000 * partitions, "but not much less, either"


def test_what_is_read_again_comes_in_large_bites(world: World) -> None:
    """It stands in the ledger already: however full that is, nothing is added."""
    world.produce(*rows(20_000))
    before = world.worker(core=fifo_core(k=2, keep=6_000))
    while not done(before, 20_000):
        world.go(before, rounds=1)
    world.broker.leave("w")
    after, rounds = world.worker("x", core=fifo_core(k=2, keep=6_000)), 0
    while not after.state.partitions:
        after.step()
    [partition] = after.state.partitions.values()
    assert partition.ledger.position - partition.position > 10_000
    while not partition.caught_up:
        world.go(after, rounds=1)
        rounds += 1
    assert rounds <= 10
