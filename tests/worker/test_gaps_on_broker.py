"""Offsets at which no record is ever delivered, on a real broker: markers, aborted records, compaction, retention."""

from __future__ import annotations

from broker_world import World, each_client, notes, rows
from fifo import fifo_core
from kafka import KafkaProducer, TopicPartition


@each_client
def test_markers_and_aborted_input_do_not_hold_the_offset_back(world: World) -> None:
    world.create()
    writer = KafkaProducer(bootstrap_servers=world.bootstrap, transactional_id=f"{world.name}-writer")
    writer.init_transactions()
    for kept in (True, False, True):
        writer.begin_transaction()
        for value in rows(3, 0 if kept else 900):
            writer.send(world.input, value=value, partition=0)
        if kept:
            writer.commit_transaction()
        else:
            writer.flush()
            writer.abort_transaction()
    writer.close()
    worker = world.worker()
    world.published(6, worker)
    world.until(lambda: worker.state.partitions[0].ledger.low == 12, worker)
    assert not [record for record in world.read() if record["v"].startswith("009")]


def test_a_member_lost_to_retention_withdraws_the_group(world: World) -> None:
    world.create()
    world.produce(*rows(3))
    world.announce_and_leave()
    world.admin.delete_records({TopicPartition(world.input, 0): 2})
    worker = world.worker()
    world.until(lambda: ("withdrawn", "member_missing", 1, 3) in notes(worker).seen, worker)
    world.produce(*rows(3, 10))
    world.published(3, worker)
    assert {record["v"] for record in world.read(level="read_uncommitted")} == {"00010", "00011", "00012"}


COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}


def test_a_compacted_input_with_real_gaps(world: World) -> None:
    """Five of six keys are written twice, in transactions: the broker removes the older records and keeps markers."""
    world.create(source=COMPACTED)
    writer = KafkaProducer(bootstrap_servers=world.bootstrap, transactional_id=f"{world.name}-writer")
    writer.init_transactions()
    for round_ in range(2):
        writer.begin_transaction()
        for i, value in enumerate(rows(6 - round_, 10 * round_)):
            writer.send(world.input, value=value, key=str(i).encode(), partition=0)
        writer.commit_transaction()

    def kept() -> list[tuple[int, bytes]]:
        return [(offset, value) for offset, value in world.records(world.input) if value != b"00099"]

    def compacted() -> bool:
        """Only closed segments are compacted, and a segment is closed by a record that comes later.

        How many of those are left is not settled: the broker goes on compacting them when it likes.
        """
        writer.begin_transaction()
        writer.send(world.input, value=b"00099", key=b"last", partition=0)
        writer.commit_transaction()
        return len(kept()) == 6

    world.until(compacted)
    writer.close()
    left = kept()
    offsets = [offset for offset, _ in left]
    assert min(offsets) > 0, "the first record is gone"
    assert max(offsets) - min(offsets) >= len(offsets), "and others after it"
    worker = world.worker(core=fifo_core(k=6))
    world.at_least(6, worker)
    world.until(lambda: worker.state.partitions[0].ledger.low > max(offsets) + 1, worker)
    published = [record["v"] for record in world.read() if record["v"] != "00099"]
    assert sorted(published) == sorted(value.decode() for _, value in left)
