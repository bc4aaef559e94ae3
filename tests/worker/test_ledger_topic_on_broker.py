"""Ledgers in a topic of a real broker: real compaction, records cut off, the topic made anew, offsets put back."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from broker_world import World, each_client, notes, policy_on, quarantine, rows
from fifo import fifo_core
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, NewPartitions
from kafka.errors import PolicyViolationError

from stream_anon.cli import run_command as run
from stream_anon.kafka.transport import GroupInUseError, Placed
from stream_anon.worker.handover import hand_over
from stream_anon.worker.loop import Worker

QUICK = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "100"}
"""Settings under which the broker compacts within seconds."""


def put_back(world: World, ledgers: dict[int, OffsetAndMetadata | None]) -> None:
    world.deserted()
    texts = {TopicPartition(world.input, number): found for number, found in ledgers.items() if found is not None}
    assert len(texts) == len(ledgers)
    world.admin.alter_group_offsets(world.name, texts)


def in_two_groups(world: World) -> int:
    groups = defaultdict(set)
    for record in world.read(level="read_uncommitted"):
        groups[record["v"]].add(record["_anon"]["group"])
    return sum(len(found) > 1 for found in groups.values())


def kept(world: World, level: str = "read_uncommitted", partition: int = 0) -> list[Any]:
    """The records of the ledger topic."""
    reader = KafkaConsumer(bootstrap_servers=world.bootstrap, isolation_level=level, fetch_max_wait_ms=50)
    tp = TopicPartition(world.ledger, partition)
    reader.assign([tp])
    reader.seek_to_beginning(tp)
    end, found = reader.end_offsets([tp])[tp], []
    until = time.monotonic() + 30
    while reader.position(tp) < end and time.monotonic() < until:
        for records in reader.poll(timeout_ms=200).values():
            found += records
    reader.close()
    return found


def published(world: World, *starts: int) -> tuple[Worker, OffsetAndMetadata | None]:
    """A worker that published three rows at each start, and what was committed after the first."""
    worker = world.worker()
    early = None
    for number, start in enumerate(starts):
        world.produce(*rows(3, start))
        world.at_least(3 * (number + 1), worker)
        for _ in range(3):
            worker.step()
        early = early or world.committed()
    return worker, early


def nothing_more(world: World, worker: Worker, count: int) -> None:
    """The worker steps on, and nothing is shown to anybody."""
    world.produce(*rows(9, 90_000))
    for _ in range(10):
        worker.step()
    assert not worker.ready
    assert len(world.read(level="read_uncommitted")) == count


@each_client
def test_a_successor_goes_on_after_compaction_of_aborted_and_superseded_records(world: World) -> None:
    world.create().keep_ledgers(**QUICK)
    worker, _ = published(world, 0, 100)
    transport = worker._transport
    key = kept(world)[0].key
    transport.begin()
    transport.write([Placed(str(world.ledger), 0, key, b"a transaction that is aborted")])
    transport.renew()
    world.until(lambda: worker.ownership.membership is not None, worker)
    world.produce(*rows(3, 200))
    world.at_least(9, worker)
    world.leave()

    def compacted() -> bool:
        """Write what nobody reads, which closes the segment before it, until one record of the key is left."""
        world.producer.send(str(world.ledger), key=b"somebody else", value=b"x", partition=0)
        world.producer.flush()
        time.sleep(0.3)
        return len([record for record in kept(world) if record.key == key]) == 1

    world.until(compacted)
    again = world.worker()
    world.produce(*rows(3, 400))
    world.published(12, again)
    assert notes(again).quarantined == {}
    assert in_two_groups(world) == 0


@each_client
def test_a_pointer_that_was_put_back_is_told_by_the_topic(world: World) -> None:
    world.create().keep_ledgers()
    _, early = published(world, 0, 100, 200)
    world.leave()
    put_back(world, {0: early})
    again = world.worker(fifo_core(k=4))
    again.ownership.witness._older = lambda *_: set()  # type: ignore[method-assign]  # the output tells nothing
    assert quarantine(world, again) == {0: "rolled-back"}
    nothing_more(world, again, 9)


def cleaned_by(world: World, policy: str) -> None:
    """Set the cleanup policy of the ledger topic."""
    topic = str(world.ledger)
    world.admin.alter_configs([ConfigResource("TOPIC", topic, {"cleanup.policy": policy})])

    def done() -> bool:
        found = world.admin.describe_configs([ConfigResource("TOPIC", topic)], config_filter="all")
        return bool(found["topic"][topic]["cleanup.policy"]["value"] == policy)

    world.until(done)


@each_client
def test_a_record_that_was_cut_off_is_told(world: World) -> None:
    """The broker refuses it as long as the topic is compacted."""
    world.create().keep_ledgers()
    published(world, 0)
    world.leave()
    cut = {TopicPartition(world.ledger, 0): kept(world)[-1].offset + 1}
    with pytest.raises(PolicyViolationError):
        world.admin.delete_records(cut)
    cleaned_by(world, "delete")
    world.admin.delete_records(cut)
    cleaned_by(world, "compact")
    again = world.worker()
    assert quarantine(world, again) == {0: "lost"}
    nothing_more(world, again, 3)


@each_client
def test_a_topic_made_anew_is_told(world: World) -> None:
    world.create().keep_ledgers()
    published(world, 0)
    world.leave()
    world.admin.delete_topics([world.ledger])
    world.until(lambda: world.admin.describe_topics([world.ledger])[0]["error_code"] != 0)
    time.sleep(0.5)
    world.keep_ledgers()
    again = world.worker()
    assert quarantine(world, again) == {0: "elsewhere"}
    nothing_more(world, again, 3)


@each_client
def test_pointers_of_other_partitions_and_of_nowhere(world: World) -> None:
    world.create(2).keep_ledgers(2)
    published(world, 0)
    world.leave()
    both = {number: world.committed(number) for number in range(2)}
    put_back(world, {0: both[1], 1: both[0]})
    again = world.worker()
    world.until(lambda: len(notes(again).quarantined) == 2, again)
    assert set(notes(again).quarantined.values()) == {"misplaced"}
    nothing_more(world, again, 3)
    world.leave()
    put_back(world, both)
    world.ledger = None
    without = world.worker()
    world.until(lambda: len(notes(without).quarantined) == 2, without)
    assert set(notes(without).quarantined.values()) == {"elsewhere"}


@each_client
def test_a_worker_that_ended_between_record_and_offset_changes_nothing(world: World) -> None:
    """Its successor waits until that transaction is over: the record could still be committed."""
    world.create().keep_ledgers()
    worker, _ = published(world, 0)
    world.produce(*rows(3, 100))
    world.until(lambda: any(p.announced for p in worker.state.partitions.values()), worker)
    plan = worker._planner.plan(worker.state.partitions, (), 1, worker.ownership.witness.seen)
    worker._transport.begin()
    worker._store.keep(plan.texts)
    world.leave()
    again = world.worker()
    world.published(6, again)
    assert notes(again).quarantined == {}
    assert in_two_groups(world) == 0


@each_client
def test_a_partition_more_needs_a_partition_more(world: World) -> None:
    world.create().keep_ledgers()
    worker, _ = published(world, 0)
    world.admin.create_partitions({world.input: NewPartitions(2)})
    world.partitions(2)
    assert quarantine(world, worker) == {1: "uncovered"}
    world.produce(*rows(3, 200))
    world.published(6, worker)


@each_client
def test_a_group_with_a_ledger_topic_is_handed_over(world: World) -> None:
    """One that found members still in the group has written its records, and changed nothing."""
    world.create(2).keep_ledgers(2)
    one, two = fifo_core(), fifo_core(salt=b"policy two")
    world.produce(*rows(4))
    old = world.worker(one)
    world.published(3, old)
    tool = world.worker(two)._transport
    arguments = (tool, world.input, two, one.fingerprint.hex())
    with pytest.raises(GroupInUseError):
        hand_over(*arguments, ledger_topic=world.ledger)
    world.produce(*rows(2, 100))
    world.published(6, old)
    old.drain()
    old._transport.close()
    world.deserted()
    assert hand_over(*arguments, ledger_topic=world.ledger) == 2
    world.produce(*rows(3, 200))
    new = world.worker(two)
    world.published(9, new)
    assert notes(new).quarantined == {}
    assert in_two_groups(world) == 0


def finding(findings: list[dict[str, Any]], question: str) -> dict[str, Any]:
    return next(found for found in findings if found["question"] == question)


@each_client
def test_topics_and_doctor_know_the_ledger_topic(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = policy_on(world, tmp_path)
    policy.write_text(policy.read_text().replace("client:", f"ledger: {world.name}-ledger, client:"))
    assert run(["topics", "-p", str(policy), "--partitions", "3", "--json"]) == 0
    found = {topic["topic"]: topic for topic in json.loads(capsys.readouterr().out)}
    assert found[f"{world.name}-ledger"]["partitions"] == 3
    assert found[f"{world.name}-ledger"]["cleanup_policy"] == "compact"
    assert run(["doctor", "-p", str(policy), "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert finding(findings, "ledger topic")["good"]
    world.admin.create_partitions({world.input: NewPartitions(4)})
    world.partitions(4)
    assert run(["doctor", "-p", str(policy), "--json"]) == 1
    [bad] = [found for found in json.loads(capsys.readouterr().out)["findings"] if not found["good"]]
    assert (bad["question"], bad["remedy"]) == ("ledger topic", "give it as many")
