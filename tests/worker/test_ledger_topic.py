"""Ledgers in a topic of their own: what is lost, foreign, made anew or put back is told, and nothing is published."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest
from fifo import fifo_core
from memory_world import World, publish_and_leave, rows

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Committed, Placed, Transport
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import Entry
from stream_anon.worker.handover import HandoverError, hand_over
from stream_anon.worker.ledger.budget import IN_TOPIC, INLINE
from stream_anon.worker.ledger.ledger import Place
from stream_anon.worker.ledger.topic import LedgerTopic
from stream_anon.worker.loop import Worker
from stream_anon.worker.takeover.restore import REMEDIES

ONE, TWO = fifo_core(), fifo_core(salt=b"policy two")


@pytest.fixture
def world() -> World:
    return World(ledger="ledger")


def kept(world: World, partition: int = 0) -> list[Entry]:
    return world.broker.topics["ledger"][partition].entries


def judged(world: World, **changes: object) -> dict[int, str]:
    """How a successor judges the partitions, after it had every chance to publish something."""
    before = len(world.out(committed=False))
    world.produce(*[b"%f" % (world.now + number) for number in range(9)])
    found = world.go(world.worker("x", **changes), rounds=10).quarantined  # type: ignore[arg-type]
    assert set(found.values()) <= set(REMEDIES)
    assert not found or len(world.out(committed=False)) == before
    return found


def in_two_groups(world: World) -> int:
    groups = defaultdict(set)
    for entry in world.out(committed=False):
        groups[entry["v"]].add(entry["_anon"]["group"])  # type: ignore[index]
    return sum(len(found) > 1 for found in groups.values())


def announced_and_left(world: World, count: int = 3) -> None:
    """A worker has announced a group, and is gone before it publishes it."""
    world.produce(*rows(count))
    worker = world.worker()
    for _ in range(20):
        worker.step()
        if any(p.announced for p in worker.state.partitions.values()):
            break
        world.now += 0.3
    world.broker.leave("w")


# how it goes on


def test_offsets_hold_a_pointer_and_a_successor_goes_on(world: World) -> None:
    announced_and_left(world, 4)
    assert world.broker.committed[0].metadata.startswith("P")
    assert len(world.broker.committed[0].metadata) < 150
    assert world.out(committed=False) == []
    assert world.go(world.worker("x")).quarantined == {}
    assert world.values() == ["00000", "00001", "00002"]
    world.produce(*rows(2))
    world.broker.leave("x")
    world.go(world.worker("y"))
    assert len(world.out()) == 6


def test_the_record_is_taken_before_the_offset_that_points_to_it(world: World) -> None:
    calls: list[str] = []
    worker = world.worker()
    worker._transport._before = calls.append  # type: ignore[attr-defined]
    world.produce(*rows(3))
    world.go(worker)
    steps = [call for call in calls if call in ("begin", "write", "send_offsets", "send", "commit")]
    assert steps[:4] == ["begin", "write", "send_offsets", "commit"]
    assert set(pairwise(steps)) & {("send_offsets", "write"), ("send", "write")} == set()


def test_a_topic_is_taken_up_by_a_group_that_kept_its_ledgers_inline(world: World) -> None:
    world.ledger = None
    publish_and_leave(world)
    assert not world.broker.committed[0].metadata.startswith("P")
    world.ledger = "ledger"
    assert judged(world) == {}
    assert world.broker.committed[0].metadata.startswith("P")
    assert in_two_groups(world) == 0


def test_compaction_leaves_what_is_pointed_to(world: World) -> None:
    announced_and_left(world)
    worker = world.worker("x")
    for _ in range(5):
        world.go(worker)
        world.broker.compact("ledger")
        world.produce(*rows(3))
    world.broker.leave("x")
    assert sum(entry.visible(committed_only=True) for entry in kept(world)) == 1
    assert judged(world) == {}


def test_what_a_crash_leaves_behind_the_pointer_is_no_later_ledger(world: World) -> None:
    announced_and_left(world)
    crashed = MemoryTransport(world.broker, "z")
    crashed.begin()
    crashed.write([Placed("ledger", 0, key, b"whatever") for key in {entry.key for entry in kept(world)} if key])
    successor = world.worker("x")
    world.go(successor)
    assert not successor.ready, "nobody knows yet whether it will be committed"
    world.broker.expire("z")
    assert world.go(successor).quarantined == {}
    assert len(world.out()) == 3


def test_another_group_may_share_the_topic(world: World) -> None:
    publish_and_leave(world)
    entry = kept(world)[0]
    entries = kept(world)
    entries.append(replace(entry, key=b"another group/topic-1/0"))
    assert judged(world) == {}


# what is lost


def test_a_record_that_is_gone(world: World) -> None:
    publish_and_leave(world)
    for entry in kept(world):
        entry.gone = True
    assert judged(world) == {0: "lost"}


def test_a_log_that_was_cut_at_its_beginning(world: World) -> None:
    publish_and_leave(world)
    world.broker.topics["ledger"][0].start = len(kept(world))
    assert judged(world) == {0: "lost"}


def test_a_log_that_was_cut_at_its_end(world: World) -> None:
    publish_and_leave(world)
    del kept(world)[1:]
    assert judged(world) == {0: "lost"}


def test_a_log_that_was_cut_and_written_anew(world: World) -> None:
    publish_and_leave(world)
    entries = kept(world)
    first, last = [entry for entry in entries if not entry.marker][:1], len(entries)
    entries[:] = first * last
    assert judged(world) == {0: "foreign"}


def test_a_topic_made_anew(world: World) -> None:
    publish_and_leave(world)
    entries = list(kept(world))
    world.broker.create_topic("ledger", 1, "compact")
    kept(world).extend(entries)  # even with the same records in it
    assert judged(world) == {0: "elsewhere"}


def test_a_topic_that_is_gone(world: World) -> None:
    publish_and_leave(world)
    world.worker("y").ownership.check_topics()
    del world.broker.topics["ledger"]
    with pytest.raises(StreamAnonError, match="there is no ledger topic"):
        world.worker("x").ownership.check_topics()
    assert judged(world) == {0: "lost"}


def test_a_topic_that_goes_while_a_worker_runs(world: World) -> None:
    worker = world.worker()
    world.produce(*rows(3))
    world.go(worker)
    del world.broker.topics["ledger"]
    world.produce(*rows(3))
    with pytest.raises(StreamAnonError, match="there is no ledger topic"):
        world.go(worker)
    assert len(world.out(committed=False)) == 3


def test_a_group_begins_with_no_topic_at_all(world: World) -> None:
    del world.broker.topics["ledger"]
    assert judged(world) == {0: "uncovered"}
    world.broker.create_topic("ledger", 1, "compact")
    world.broker.rebalance()
    assert judged(world) == {}


def test_a_policy_that_names_no_topic_any_more(world: World) -> None:
    publish_and_leave(world)
    assert judged(world, ledger=None) == {0: "elsewhere"}


def test_a_pointer_of_another_partition() -> None:
    world = World(partitions=2, ledger="ledger")
    publish_and_leave(world)
    world.broker.committed = {0: world.broker.committed[1], 1: world.broker.committed[0]}
    assert judged(world) == {0: "misplaced", 1: "misplaced"}


def test_a_pointer_whose_offset_was_moved(world: World) -> None:
    publish_and_leave(world)
    world.broker.committed[0] = Committed(0, world.broker.committed[0].metadata)
    assert judged(world) == {0: "moved"}


def test_a_partition_that_the_topic_has_none_for(world: World) -> None:
    worker = world.worker()
    world.go(worker, rounds=30)
    world.broker.add_partition("in")
    world.broker.rebalance()
    world.produce(*rows(3), partition=1)
    assert world.go(worker).quarantined == {1: "uncovered"}
    world.produce(*rows(3))
    world.go(worker)
    assert len(world.out()) == 3
    world.broker.add_partition("ledger")
    world.broker.rebalance()
    assert world.go(worker).quarantined == {}
    assert len(world.out()) == 6


def test_a_sibling_that_is_lost_proves_that_the_group_is_not_new() -> None:
    """Nothing was published yet, and nothing is committed for one partition."""
    world = World(partitions=2, ledger="ledger")
    world.go(world.worker())
    world.broker.leave("w")
    del world.broker.committed[1]
    world.broker.create_topic("ledger", 2, "compact")
    assert judged(world) == {0: "elsewhere", 1: "unproved"}


# what was put back


def published_twice(world: World) -> tuple[Committed, Committed]:
    """What was committed first and last by a worker that published in between, and is gone."""
    worker = world.worker()
    world.go(worker, rounds=2)
    early = world.broker.committed[0]
    for _ in range(2):
        world.produce(*rows(3))
        world.go(worker)
    world.broker.leave("w")
    return early, world.broker.committed[0]


@pytest.mark.parametrize("compacted", [False, True])
def test_a_pointer_that_was_put_back(world: World, compacted: bool) -> None:
    early, latest = published_twice(world)
    world.broker.committed[0] = early
    world.broker.create_topic("out")  # what it would have told is gone
    if compacted:
        world.broker.compact("ledger")
    assert judged(world) == {0: "rolled-back"}
    world.broker.committed[0] = latest
    assert judged(world) == {}


def test_an_inline_ledger_that_was_put_back(world: World) -> None:
    world.ledger = None
    world.go(world.worker(), rounds=2)
    early = world.broker.committed[0]
    world.broker.leave("w")
    world.ledger = "ledger"
    published_twice(world)
    world.broker.committed[0] = early
    world.broker.create_topic("out")
    assert judged(world) == {0: "rolled-back"}


@pytest.mark.parametrize(("start", "code"), [(None, {0: "unproved"}), ("latest", {})])
def test_offsets_that_were_deleted(world: World, start: str | None, code: dict[int, str]) -> None:
    """The output was made anew, too: only the ledger topic knows that the group was at work."""
    published_twice(world)
    world.broker.committed.clear()
    world.broker.create_topic("out")
    assert judged(world, start=start) == code


def test_whether_a_later_ledger_was_committed_is_waited_for(world: World) -> None:
    early, _ = published_twice(world)
    world.broker.committed[0] = early
    hiding = world.broker.transaction("somebody", world.broker.initialize("somebody"))
    kept(world).append(Entry(b"another's", b"", transaction=hiding))
    successor = world.worker("x")
    assert world.go(successor).quarantined == {}
    assert successor.state.partitions == {}
    world.broker.end("somebody", "committed")
    assert world.go(successor).quarantined == {0: "rolled-back"}


def test_a_tombstone_is_no_way_to_hide_a_later_ledger(world: World) -> None:
    early, _ = published_twice(world)
    world.broker.committed[0] = early
    kept(world).append(Entry(kept(world)[0].key, None))
    world.broker.compact("ledger")
    assert judged(world) == {0: "rolled-back"}


# which topics will do


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cleanup_policy": "delete"}, "would delete ledgers"),
        ({"cleanup_policy": "compact,delete"}, "would delete ledgers"),
        ({"partitions": 1}, "give it as many"),
        ({"max_message_bytes": 100_000}, "max.message.bytes"),
    ],
)
def test_a_topic_that_would_lose_ledgers_is_refused(changes: dict[str, object], told: str) -> None:
    world = World(partitions=2, ledger="ledger")
    world.worker().ownership.check_topics()
    world.broker.facts["ledger"] = replace(world.broker.facts["ledger"], **changes)  # type: ignore[arg-type]
    with pytest.raises(StreamAnonError, match=told):
        world.worker().ownership.check_topics()


# room


def waiting(world: World, worker: Worker) -> int:
    """How many rows wait in a worker that is given 100,000."""
    world.produce(*[b"x"] * 100_000)
    world.go(worker, rounds=60)
    return worker.state.waiting


def test_a_hundred_thousand_rows_wait_in_one_partition(world: World) -> None:
    worker = world.worker(core=fifo_core(k=500_000))
    assert waiting(world, worker) == 100_000
    assert not worker.throttle.paused
    world.broker.leave("w")
    successor = world.worker("x", core=fifo_core(k=500_000))
    world.go(successor, rounds=60)
    assert successor.state.waiting == 100_000
    small = World()
    assert waiting(small, small.worker(core=fifo_core(k=500_000))) < 60_000


def test_the_budget_of_a_topic_is_kept_by_the_default_of_max_message_bytes(world: World) -> None:
    assert IN_TOPIC.record_bytes <= world.broker.facts["ledger"].max_message_bytes
    assert IN_TOPIC.largest_k > 50_000 > INLINE.largest_k


# handing over


def hand(world: World, transport: Transport, old: str = ONE.fingerprint.hex()) -> int:
    return hand_over(transport, "in", TWO, old, ledger_topic="ledger")


def outsider(world: World) -> MemoryTransport:
    return MemoryTransport(world.broker, "outside", "handover")


def test_a_group_is_handed_over(world: World) -> None:
    publish_and_leave(world)
    assert hand(world, outsider(world)) == 1
    world.produce(b"a", b"b")
    assert world.go(world.worker("x", TWO)).quarantined == {}
    assert len(world.out()) == 6
    assert in_two_groups(world) == 0


def test_a_handover_that_ends_half_way_changes_nothing(world: World) -> None:
    publish_and_leave(world)
    transport = outsider(world)

    def fail(texts: object) -> None:
        raise RuntimeError("killed")

    transport.replace_ledgers = fail  # type: ignore[assignment, method-assign]
    with pytest.raises(RuntimeError):
        hand(world, transport)
    world.broker.compact("ledger")
    assert judged(world) == {}


def test_a_ledger_that_is_lost_cannot_be_handed_over(world: World) -> None:
    publish_and_leave(world)
    for entry in kept(world):
        entry.gone = True
    with pytest.raises(HandoverError, match="no longer holds"):
        hand(world, outsider(world))


# what it tells others


def test_neither_pointer_nor_record_tells_anything(world: World) -> None:
    publish_and_leave(world)
    store = LedgerTopic(MemoryTransport(world.broker, "reader"), "ledger", b"another secret")
    place = Place("memory", world.broker.facts["in"].topic_id, 0, "group")
    [pointed] = store.find({place: world.broker.committed[0]}).values()
    values = [(entry.value or b"").decode() for entry in kept(world) if not entry.marker]
    [*whole] = (store.find({place: Committed(0, value)})[place] for value in values)
    assert {getattr(found, "code", None) for found in [pointed, *whole]} == {"unreadable"}
