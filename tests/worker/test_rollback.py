"""An authentic ledger that is not the latest, put back while no worker ran, is told by what was published since."""

from __future__ import annotations

from collections import defaultdict

import pytest
from fifo import fifo_core
from memory_world import Notes, World, rows

from stream_anon.kafka.transport import Committed
from stream_anon.worker.loop import Worker
from stream_anon.worker.state import partition as partition_state
from stream_anon.worker.takeover.restore import REMEDIES


@pytest.fixture
def world() -> World:
    return World(partitions=2)


def begun(world: World) -> tuple[Worker, dict[int, Committed]]:
    """A worker that has written a first ledger for each partition, and these."""
    worker = world.worker()
    world.go(worker)
    return worker, dict(world.broker.committed)


def announced(world: World, worker: Worker) -> int:
    """Step until groups are announced, and return where."""
    for _ in range(20):
        worker.step()
        homes = [number for number, p in worker.state.partitions.items() if p.announced]
        if homes:
            return homes[0]
        world.now += 0.3
    raise AssertionError("nothing was announced")


def succeed(world: World, ledgers: dict[int, Committed], k: int = 3) -> Notes:
    """All workers are gone, ledgers are put back, and another worker comes that would form other groups."""
    world.broker.leave("w")
    world.broker.expire("w")
    world.broker.committed.update(ledgers)
    world.produce(*rows(7), partition=1)
    return world.go(world.worker("x", fifo_core(k=k)), rounds=10)


def in_two_groups(world: World) -> int:
    groups = defaultdict(set)
    for entry in world.out(committed=False):
        groups[entry["v"]].add(entry["_anon"]["group"])  # type: ignore[index]
    return sum(len(found) > 1 for found in groups.values())


def test_what_was_published_since_tells(world: World, caplog: pytest.LogCaptureFixture) -> None:
    worker, early = begun(world)
    world.produce(b"a", b"b", b"c", partition=0)
    world.go(worker)
    found = succeed(world, early, k=2)
    assert found.quarantined[0] == "rolled-back"
    assert len([e for e in world.out() if e["v"] in ("a", "b", "c")]) == 3
    assert in_two_groups(world) == 0
    told = [record for record in caplog.records if record.message == "quarantined"]
    assert {record.remedy for record in told} == {REMEDIES["rolled-back"]}  # type: ignore[attr-defined]


def test_what_was_shown_and_never_committed_tells(world: World) -> None:
    """Readers of uncommitted records saw it: whoever forms other groups of it shows them two."""
    worker, early = begun(world)
    world.produce(b"a", b"b", b"c")
    announced(world, worker)
    plan = worker._planner.plan(worker.state.partitions, (), 2, worker.ownership.witness.seen)
    worker._transport.begin()
    worker._transport.send(plan.records("out"))
    assert succeed(world, early, k=2).quarantined[0] == "rolled-back"
    assert in_two_groups(world) == 0


def test_a_sibling_that_announces_its_rows_tells(world: World) -> None:
    worker, early = begun(world)
    world.produce(b"a", partition=0)
    world.produce(b"b", b"c", partition=1)
    home = announced(world, worker)
    other = 1 - home
    assert world.out(committed=False) == []
    assert succeed(world, {other: early[other]}, k=2).quarantined == {other: "rolled-back"}
    assert {"a", "b", "c"} <= set(world.values())
    assert in_two_groups(world) == 0


def test_one_step_back_is_not_published_a_second_time(world: World) -> None:
    """The ledger before the last one announces what the last one published: the same groups, twice."""
    worker, _ = begun(world)
    world.produce(b"a", b"b", b"c")
    home = announced(world, worker)
    before = {home: world.broker.committed[home]}
    world.go(worker)
    assert succeed(world, before).quarantined == {home: "rolled-back"}
    assert sorted(v for v in world.values() if v in ("a", "b", "c")) == ["a", "b", "c"]


def test_a_crash_inside_a_transaction_is_none(world: World) -> None:
    """What it shows was written with ledgers that were never committed."""
    worker, _ = begun(world)
    world.produce(b"a", b"b", b"c")
    announced(world, worker)
    plan = worker._planner.plan(worker.state.partitions, (), 2, worker.ownership.witness.seen)
    assert worker.ownership.membership is not None
    worker._transport.begin()
    worker._transport.send_offsets(worker._store.keep(plan.texts), worker.ownership.membership)
    worker._transport.send(plan.records("out"))
    assert succeed(world, {}).quarantined == {}
    assert {"a", "b", "c"} <= set(world.values())
    assert in_two_groups(world) == 0


def test_whether_it_was_committed_is_waited_for(world: World) -> None:
    """Somebody else's transaction hides the answer for a while: nobody is blamed, nothing is begun."""
    worker, _ = begun(world)
    world.produce(b"a", b"b", b"c")
    home = announced(world, worker)
    before = {home: world.broker.committed[home]}
    world.go(worker)
    hiding = world.broker.transaction("somebody", world.broker.initialize("somebody"))
    world.broker.topics["out"][0].entries[1].transaction = hiding
    world.broker.leave("w")
    world.broker.committed.update(before)
    successor = world.worker("x")
    assert world.go(successor).quarantined == {}
    assert successor.state.partitions == {}
    world.broker.end("somebody", "committed")
    assert world.go(successor).quarantined == {home: "rolled-back"}


def test_a_ledger_of_another_group_is_none_of_ours(world: World) -> None:
    begun(world)
    world.broker.leave("w")
    world.broker.group = "another group"
    assert world.go(world.worker("x")).quarantined == {0: "misplaced", 1: "misplaced"}


def test_marks_of_another_group_tell_nothing(world: World) -> None:
    """An output that was taken over holds those of the group before, with numbers of its own."""
    worker, _ = begun(world)
    for _ in range(5):
        world.produce(b"a", b"b", b"c")
        world.go(worker)
    world.broker.leave("w")
    world.broker.group, world.broker.committed = "another group", {}
    world.go(world.worker("x", start="latest"))
    world.broker.leave("x")
    for log in world.broker.topics["out"]:
        log.entries += log.entries
    assert world.go(world.worker("y")).quarantined == {}


def test_a_ledger_begun_anew_follows_what_siblings_know(world: World) -> None:
    """An operator gave up a partition's offset while a sibling announced some of its rows."""
    worker, _ = begun(world)
    for _ in range(3):
        world.produce(b"x", b"y", b"z", partition=0)
        world.go(worker)
    world.produce(b"a", partition=0)
    world.produce(b"b", b"c", partition=1)
    home = announced(world, worker)
    world.broker.leave("w")
    del world.broker.committed[1 - home]
    world.go(world.worker("x", start="latest"), rounds=1)
    world.broker.leave("x")
    assert world.go(world.worker("y")).quarantined == {}


def test_only_what_came_after_the_ledger_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle partition says anew how far the output has come, when that is far."""
    monkeypatch.setattr(partition_state, "_FAR", 6)
    worker, _ = begun(world)
    for _ in range(8):
        world.produce(b"a", b"b", b"c", partition=0)
        world.go(worker, seconds=1.1)
    world.broker.leave("w")
    successor = world.worker("x")
    asked: list[dict[int, int]] = []
    real = successor._transport.read

    def read(topic: str, since: dict[int, int], committed: bool) -> object:
        asked.append(since)
        return real(topic, since, committed)

    successor._transport.read = read  # type: ignore[assignment, method-assign]
    assert world.go(successor).quarantined == {}
    end = len(world.broker.topics["out"][0].entries)
    assert asked
    assert end - asked[0][0] < 12 < end


def test_an_output_made_anew_is_read_from_its_beginning(world: World) -> None:
    """Offsets of a topic that is gone say nothing about another one of the same name."""
    worker, _ = begun(world)
    for _ in range(5):
        world.produce(b"x", b"y", b"z")
        world.go(worker, seconds=1.1)
    early = dict(world.broker.committed)
    world.broker.leave("w")
    world.broker.create_topic("out")
    worker = world.worker()
    world.go(worker)
    world.produce(b"a", b"b", b"c")
    world.go(worker)
    assert succeed(world, early, k=2).quarantined[0] == "rolled-back"
    assert in_two_groups(world) == 0


def test_one_ledger_far_behind_does_not_make_the_others_read_far(world: World) -> None:
    worker, early = begun(world)
    for _ in range(5):
        world.produce(b"x", b"y", b"z", partition=0)
        world.produce(b"x", b"y", b"z", partition=1)
        world.go(worker, seconds=1.1)
    world.broker.leave("w")
    world.broker.committed[0] = early[0]
    successor = world.worker("x")
    seen: list[bytes] = []
    real = successor._transport.read

    def read(topic: str, since: dict[int, int], committed: bool) -> object:
        for record in real(topic, since, committed):
            seen.extend([record.mark] if record.mark else [])
            yield record

    successor._transport.read = read  # type: ignore[assignment, method-assign]
    assert world.go(successor).quarantined == {0: "rolled-back"}
    assert len(seen) <= 4 < sum(bool(entry.mark) for entry in world.broker.topics["out"][0].entries)
