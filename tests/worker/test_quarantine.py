"""A partition whose ledger cannot be trusted is left alone; one that is proved new is begun."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fifo import Core, fifo_core
from memory_world import World, publish_and_leave, rows

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Committed
from stream_anon.worker.takeover.restore import REMEDIES


@pytest.fixture
def world() -> World:
    return World()


def test_wiped_metadata_is_a_quarantine(world: World) -> None:
    publish_and_leave(world)
    world.broker.committed[0] = Committed(0, "")
    worker = world.worker("x")
    notes = world.go(worker)
    assert notes.quarantined == {0: "empty"}
    assert not worker.ready
    assert worker.unready == f"partition 0 is quarantined as empty: {REMEDIES['empty']}"
    assert len(world.out()) == 3


def test_a_reset_offset_is_a_quarantine(world: World) -> None:
    publish_and_leave(world)
    world.broker.committed[0] = Committed(0, world.broker.committed[0].metadata)
    assert world.go(world.worker("x")).quarantined == {0: "moved"}


def test_a_topic_made_anew_is_a_quarantine(world: World) -> None:
    publish_and_leave(world)
    world.broker.create_topic("in", 1)
    world.produce(*rows(9))
    assert world.go(world.worker("x")).quarantined == {0: "misplaced"}
    assert len(world.out()) == 3


def test_another_secret_is_a_quarantine(world: World) -> None:
    publish_and_leave(world)
    one = fifo_core()
    other = Core(one.encode, one.engine, one.release, one.write, one.fingerprint, b"another secret")
    assert world.go(world.worker("x", other)).quarantined == {0: "unreadable"}


@pytest.mark.parametrize(("start", "published"), [(None, 3), ("earliest", 6), ("latest", 3)])
def test_expired_offsets_are_not_read_again_unless_told(world: World, start: str | None, published: int) -> None:
    publish_and_leave(world)
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


def test_a_log_shorter_than_the_committed_offset_is_a_quarantine(world: World) -> None:
    publish_and_leave(world)
    del world.broker.topics["in"][0].entries[2:]
    assert world.go(world.worker("x")).quarantined == {0: "beyond"}


def test_a_log_cut_below_the_position_is_a_quarantine(world: World) -> None:
    """Rows wait below the cut; what is written above it anew would count as finished."""
    world.produce(*rows(7))
    world.go(world.worker(core=fifo_core(k=9)))
    world.broker.leave("w")
    del world.broker.topics["in"][0].entries[5:]
    assert world.go(world.worker("x")).quarantined == {0: "beyond"}


def test_a_broker_that_tells_no_ids_of_topics_is_refused(world: World) -> None:
    old = world.broker.facts["out"]
    world.broker.facts["out"] = replace(old, topic_id="00000000-0000-0000-0000-000000000000")
    with pytest.raises(StreamAnonError, match=r"2\.8 or later"):
        world.worker().ownership.check_topics()


def test_a_transaction_that_stays_open_is_told_and_waited_for(world: World, caplog: pytest.LogCaptureFixture) -> None:
    publish_and_leave(world)
    world.produce(*rows(3))
    hanging = world.broker.transaction("somebody", world.broker.initialize("somebody"))
    hanging.offsets[0] = world.broker.committed[0]
    worker = world.worker("x")
    world.go(worker, rounds=20, seconds=1.0)
    assert "waiting for a transaction to end" not in caplog.messages
    world.go(worker, rounds=20, seconds=1.0)
    assert caplog.messages.count("waiting for a transaction to end") == 1
    assert not worker.ready
    assert worker.unready == "partitions [0] wait for a transaction to end: ask stream-anon doctor"
    assert len(world.out()) == 3
    world.broker.end("somebody", "aborted")
    world.go(worker)
    assert worker.ready
    assert not worker.unready
    assert len(world.out()) == 6


def test_an_old_ledger_is_not_believed(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.produce(*rows(3))
    worker = world.worker("x")
    world.go(worker)
    old = dict(world.broker.committed)
    world.produce(*rows(3))
    world.go(worker)
    assert len(world.out()) == 6
    new, world.broker.committed = dict(world.broker.committed), old
    worker.ownership.forget(0, world.now)
    world.go(worker)
    assert not worker.ready
    assert "the broker returned an old ledger; asking again" in caplog.messages
    world.broker.committed = new
    world.go(worker)
    assert worker.ready
    assert len(world.out()) == 6
