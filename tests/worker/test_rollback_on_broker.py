"""Ledgers that were put back while no worker ran are told by what was published since, on a real broker."""

from __future__ import annotations

from collections import defaultdict

from broker_world import World, each_client, notes, rows
from fifo import fifo_core
from kafka import OffsetAndMetadata, TopicPartition


def put_back(world: World, ledgers: dict[int, OffsetAndMetadata | None]) -> None:
    """Commit earlier ledgers once the group has no member, as anyone may who may commit for it."""
    world.deserted()
    texts = {TopicPartition(world.input, number): found for number, found in ledgers.items() if found is not None}
    assert len(texts) == len(ledgers)
    world.admin.alter_group_offsets(world.name, texts)


def in_two_groups(world: World) -> int:
    groups = defaultdict(set)
    for record in world.read(level="read_uncommitted"):
        groups[record["v"]].add(record["_anon"]["group"])
    return sum(len(found) > 1 for found in groups.values())


@each_client
def test_all_ledgers_put_back_publish_nothing_again(world: World) -> None:
    world.create(3)
    for number in range(3):
        world.produce(*rows(4, 1_000 * number), partition=number)
    worker = world.worker()
    world.published(12, worker)
    early = {number: world.committed(number) for number in range(3)}
    for number in range(3):
        world.produce(*rows(296, 1_000 * number + 4), partition=number)
    world.published(900, worker)
    world.leave()
    put_back(world, early)
    again = world.worker(fifo_core(k=4))  # it would form other groups
    world.until(lambda: len(notes(again).quarantined) == 3, again)
    assert set(notes(again).quarantined.values()) == {"rolled-back"}
    assert not again.ready
    for _ in range(10):
        again.step()
    assert len(world.read(level="read_uncommitted")) == 900
    assert in_two_groups(world) == 0


@each_client
def test_one_ledger_put_back_beside_a_sibling_that_announces_its_rows(world: World) -> None:
    """Nothing of it is in the output yet; the sibling's owner publishes it while the other is looked at."""
    world.create(2)
    first = world.worker()
    world.until(lambda: first.ready and all(p.text for p in first.state.partitions.values()), first)
    early = {number: world.committed(number) for number in range(2)}
    world.produce(*rows(1))
    world.produce(*rows(2, 100), partition=1)
    world.until(lambda: any(p.announced for p in first.state.partitions.values()), first)
    [home] = [number for number, p in first.state.partitions.items() if p.announced]
    world.leave()
    other = 1 - home
    put_back(world, {other: early[other]})
    workers = [world.worker(), world.worker()]
    world.until(lambda: any(notes(w).quarantined for w in workers), *workers)
    assert {n: c for w in workers for n, c in notes(w).quarantined.items()} == {other: "rolled-back"}
    world.produce(*rows(3, 200), partition=other)
    world.published(3, *workers)
    assert in_two_groups(world) == 0


@each_client
def test_the_latest_ledgers_go_on_after_any_end(world: World) -> None:
    """A transaction that never ended shows records, too: its ledgers were not put back, they were not written."""
    world.create(2)
    for number in range(2):
        world.produce(*rows(3, 100 * number), partition=number)
    worker = world.worker()
    world.until(lambda: any(p.announced for p in worker.state.partitions.values()), worker)
    assert worker.ownership.membership is not None
    plan = worker._planner.plan(worker.state.partitions, worker.state.formed, 2, worker.ownership.witness.seen)
    transport = worker._transport
    transport.begin()
    transport.send_offsets(worker._store.keep(plan.texts), worker.ownership.membership)
    transport.send(plan.records(world.output))
    world.until(lambda: len(world.read(level="read_uncommitted")) >= 3)
    transport.close()
    successor = world.worker()
    world.published(6, successor)
    assert notes(successor).quarantined == {}
    assert in_two_groups(world) == 0
