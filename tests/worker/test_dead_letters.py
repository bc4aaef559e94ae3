"""What cannot be used: each record is told once, beside its offset, without its content."""

from __future__ import annotations

import pytest
from memory_world import World, rows


@pytest.fixture
def world() -> World:
    return World()


def test_dead_letters_come_with_the_offsets_and_without_the_payload(world: World) -> None:
    world.produce(b"bad SECRET", None, *rows(3))
    world.go(world.worker())
    letters = world.out(topic="dead")
    assert [(x["code"], x["offset"]) for x in letters] == [("not_json", 0), ("tombstone", 1)]
    assert b"SECRET" not in b"".join(e.value or b"" for e in world.broker.read("dead", False))
    assert world.broker.committed[0].offset == 5


def test_a_record_too_large_is_rejected_before_its_group_is_announced(world: World) -> None:
    worker = world.worker()
    worker.state.limit(200, world.now)
    world.produce(b"0", b"x" * 300, b"1", b"2", b"3", b"4")
    notes = world.go(worker, rounds=8)
    assert ("rejected", "oversized", 1) in notes.seen
    assert len(world.out()) == 3
    assert [x["offset"] for x in world.out(topic="dead")] == [1]


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
