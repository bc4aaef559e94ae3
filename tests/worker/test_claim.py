"""An output belongs to one group and one policy: whoever comes second is refused, unless an operator takes it over."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import defaultdict
from pathlib import Path

import pytest
from broker_world import World, each_client, policy_on
from kafka import KafkaConsumer, TopicPartition

from stream_anon import load_policy, run_worker
from stream_anon.core.schema import Schema
from stream_anon.worker.claim import Claim, OutputTakenError, claim_group
from stream_anon.worker.factory import claim_of, hold_output, kafka_of, output_claim

PROGRAM = [sys.executable, "-m", "stream_anon"]


def policies(world: World, folder: Path) -> tuple[Path, Path]:
    """One policy, and the same for another group on the same input and output."""
    first = policy_on(world, folder)
    second = folder / "second.yaml"
    second.write_text(first.read_text().replace(f"group: {world.name}", f"group: {world.name}-two"))
    return first, second


def holder(file: Path) -> Claim | None:
    with output_claim(kafka_of(load_policy(file))) as claim:
        return claim.holder()


def hold(file: Path, *, takeover: bool = False) -> None:
    policy = load_policy(file)
    hold_output(kafka_of(policy), Schema.of(policy), takeover=takeover)


def fill(world: World, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        record = {"person": f"p{number}", "age": number * 37 % 99, "illness": "flu", "rid": number}
        world.produce(json.dumps(record).encode())


def work(world: World, file: Path, count: int) -> None:
    """Run a worker of a policy until so many records are visible."""
    stop, errors = threading.Event(), []

    def run() -> None:
        try:
            run_worker(load_policy(file), stop=stop)
        except Exception as error:
            errors.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        world.until(lambda: bool(errors) or len(world.read()) >= count)
    finally:
        stop.set()
        thread.join(60)
    assert not errors


def in_two_groups(world: World) -> int:
    groups = defaultdict(set)
    for record in world.read(level="read_uncommitted"):
        groups[record["rid"]].add(record["_anon"]["group"])
    return sum(len(found) > 1 for found in groups.values())


@each_client
def test_a_second_group_is_refused_and_no_row_is_in_two_groups(world: World, tmp_path: Path) -> None:
    """Both begin on an output in which nothing is yet."""
    world.create()
    first, second = policies(world, tmp_path)
    fill(world, 40)
    work(world, first, 36)
    done = subprocess.run(
        [*PROGRAM, "run", "-p", str(second), "--from", "earliest", "--status-port", "0"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3, done.stderr
    said = " ".join(done.stderr.split())
    assert f"group {world.name} with policy" in said
    assert "--takeover" in said
    assert in_two_groups(world) == 0
    assert holder(second) == holder(first)
    asked = subprocess.run(
        [*PROGRAM, "doctor", "-p", str(second), "--json"], capture_output=True, text=True, timeout=120
    )
    [found] = [each for each in json.loads(asked.stdout)["findings"] if each["question"] == "claim on the output"]
    assert not found["good"]
    assert f"group {world.name} with policy" in found["detail"]
    work(world, first, 36)  # the holder itself goes on


@each_client
def test_of_two_groups_that_begin_together_one_gets_the_output(world: World, tmp_path: Path) -> None:
    world.create()
    files, refused = policies(world, tmp_path), []

    def contend(file: Path) -> None:
        try:
            hold(file)
        except OutputTakenError:
            refused.append(file)

    threads = [threading.Thread(target=contend, args=[file]) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    [loser] = refused
    [winner] = set(files) - {loser}
    found = holder(winner)
    assert found is not None
    assert found.group == load_policy(winner).kafka.group  # type: ignore[union-attr]


def test_an_operator_takes_it_over(world: World, tmp_path: Path) -> None:
    world.create()
    first, second = policies(world, tmp_path)
    hold(first)
    hold(first)
    with pytest.raises(OutputTakenError, match=f"group {world.name} with policy"):
        hold(second)
    hold(second, takeover=True)
    with pytest.raises(OutputTakenError, match=f"group {world.name}-two with policy"):
        hold(first)


def test_another_policy_in_the_same_group_is_refused_and_handed_the_claim(world: World, tmp_path: Path) -> None:
    world.create()
    first = policy_on(world, tmp_path)
    changed = tmp_path / "changed.yaml"
    changed.write_text(first.read_text().replace("k: 4", "k: 6"))
    fill(world, 40)
    work(world, first, 36)
    with pytest.raises(OutputTakenError, match="stream-anon handover"):
        hold(changed)
    old = holder(first)
    assert old is not None
    done = subprocess.run(
        [*PROGRAM, "handover", "-p", str(changed), "--from", old.policy], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    hold(changed)
    with pytest.raises(OutputTakenError):
        hold(first)


def test_a_claim_on_a_topic_made_anew_is_void(world: World, tmp_path: Path) -> None:
    """The id of the topic is part of it: offsets of a reserved group outlive a topic on some brokers."""
    world.create()
    first, second = policies(world, tmp_path)
    policy = load_policy(first)
    kafka = kafka_of(policy)
    with output_claim(kafka) as claim:
        claim.hold(claim_of(kafka, Schema.of(policy), "the id of a topic that was deleted"))
        assert claim.holder() is None
    hold(second)
    assert holder(first) == holder(second) != None  # noqa: E711 - chained on purpose


@each_client
def test_a_claim_outlives_its_offset_where_ledgers_have_a_topic(world: World, tmp_path: Path) -> None:
    """Brokers forget the offsets of a group that nobody joins, by default after a week."""
    world.create().keep_ledgers()
    first, second = policies(world, tmp_path)
    for file in (first, second):
        file.write_text(file.read_text().replace("input:", f"ledger: {world.ledger}, input:", 1))
    hold(first)
    reserved = claim_group(world.output)
    world.until(lambda: not world.admin.describe_groups([reserved])[reserved]["members"])
    world.admin.delete_groups([reserved])
    reader = KafkaConsumer(bootstrap_servers=world.bootstrap, group_id=reserved)
    assert reader.committed(TopicPartition(world.output, 0)) is None
    reader.close(autocommit=False)
    assert holder(second) == holder(first) != None  # noqa: E711 - chained on purpose
    with pytest.raises(OutputTakenError):
        hold(second)
    hold(first)  # the holder writes it again
    hold(second, takeover=True)
    with pytest.raises(OutputTakenError):
        hold(first)
