"""Deadlines, and an orderly end: what is suppressed, what is left to the successor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fifo import Fifo, Outcome, Rows, fifo_core
from memory_world import World, rows

from stream_anon.stream.outcome import always


@pytest.fixture
def world() -> World:
    return World()


def test_rows_without_company_are_suppressed_at_the_deadline(world: World) -> None:
    world.produce(*rows(2))
    notes = world.go(world.worker(core=fifo_core(delay=1.0)), rounds=12)
    assert ("suppressed", "deadline", 2) in notes.seen
    assert world.broker.committed[0].offset == 2


def test_nothing_is_suppressed_before_the_partition_is_read_again(world: World) -> None:
    world.produce(*rows(5))
    world.go(world.worker(core=fifo_core(k=6)))
    world.broker.leave("w")
    world.produce(b"last")
    worker = world.worker("x", fifo_core(k=6, delay=0.1), poll_records=1)
    notes = world.go(worker, rounds=5, seconds=1.0)
    assert not [seen for seen in notes.seen if seen[0] == "suppressed"]
    world.go(worker, rounds=5, seconds=0.0)
    assert not worker.state.formed or len(world.out()) == 6


def test_a_slow_engine_takes_smaller_bites(world: World) -> None:
    """Five milliseconds a row under a bound of 3.2 seconds: not more than 40 rows' time in a round, or the least."""
    bites = []

    class Slow(Fifo):
        pause = 0.005

        def push(self, rows: Rows, now: float, *, more: Callable[[], bool] = always) -> Outcome:
            bites.append(len(rows))
            world.now += self.pause * len(rows)
            return super().push(rows, now)

    world.produce(*rows(3_000))
    worker = world.worker(core=replace(fifo_core(), engine=lambda: Slow(3, None, b"policy one")), delay=3.2)
    world.go(worker, rounds=5, seconds=0.0)
    assert bites[0] > 1_000
    assert bites[1:] == [100] * (len(bites) - 1)
    Slow.pause = 0.00001
    world.go(worker, rounds=5, seconds=0.0)
    assert max(bites[1:]) > 100, "and larger ones again when it is fast"
    world.go(worker, rounds=20)
    assert len(world.out()) == 3_000


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
    announced = worker.state.partitions
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


def test_who_leaves_takes_up_nothing_that_another_leaves_behind() -> None:
    world = World(partitions=2)
    one, other = world.worker("w"), world.worker("x")
    for _ in range(8):
        for partition in range(2):
            world.produce(*rows(3), partition=partition)
        for worker in one, other:
            world.go(worker, rounds=1)
    mine = one.ownership.owned
    assert len(mine) == len(other.ownership.owned) == 1
    world.produce(*rows(3), partition=mine[0])
    world.go(one, rounds=1, seconds=0.0)
    assert one.state.unpublished
    other.drain()
    other._transport.close()
    one.drain()
    assert one.ownership.owned == mine
    assert not one.state.unpublished
    one._transport.close()
    world.go(world.worker("y"), rounds=10)
    assert len(world.out()) == 2 * 24 + 3
