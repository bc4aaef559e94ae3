"""A consumer group works by one policy: another one is refused at the door, at every partition, and moves in only when
nobody is at work.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import memory_world
import pytest
from broker_world import World, each_client, policy_on, rows
from fifo import Core, fifo_core

from stream_anon.kafka.transport import GroupInUseError
from stream_anon.testing.memory import MemoryTransport
from stream_anon.worker.handover import HandoverError, hand_over
from stream_anon.worker.ledger.codec import Codec
from stream_anon.worker.ledger.ledger import Place
from stream_anon.worker.loop import Worker
from stream_anon.worker.takeover.restore import OtherPolicyError

ONE, TWO = fifo_core(), fifo_core(salt=b"policy two")
OLD = ONE.fingerprint.hex()


def with_secret(core: Core, secret: bytes) -> Core:
    return Core(core.encode, core.engine, core.release, core.write, core.fingerprint, secret)


def step_until_refused(world: World, wrong: Worker, *others: Worker) -> None:
    refused = []

    def seen() -> bool:
        try:
            wrong.step()
        except OtherPolicyError:
            refused.append(True)
        return bool(refused)

    world.until(seen, *others)


# on a real broker


@each_client
def test_another_policy_is_refused_before_it_joins(world: World) -> None:
    world.create(2)
    world.produce(*rows(3))
    world.published(3, world.worker(ONE))
    with pytest.raises(OtherPolicyError) as refused:
        world.worker(TWO).run()
    assert OLD in str(refused.value)
    assert TWO.fingerprint.hex() in str(refused.value)
    assert "handover" in str(refused.value)
    assert len(world.admin.describe_groups([world.name])[world.name]["members"]) == 1


@each_client
def test_another_secret_is_refused_before_it_joins(world: World) -> None:
    world.create()
    world.produce(*rows(3))
    world.published(3, world.worker(ONE))
    with pytest.raises(OtherPolicyError, match="another secret"):
        world.worker(with_secret(ONE, b"another secret")).run()


@each_client
def test_a_member_with_another_policy_takes_no_partition(world: World) -> None:
    """The check before joining is over when the group begins: every assignment is judged again."""
    world.create(2)
    world.produce(*rows(3))
    right = world.worker(ONE)
    world.published(3, right)
    wrong = world.worker(TWO)
    step_until_refused(world, wrong, right)
    wrong._transport.close()
    for partition in range(2):
        world.produce(*rows(3, 10 + 10 * partition), partition=partition)
    world.published(9, right)
    assert wrong.state.partitions == {}


@each_client
def test_of_two_policies_that_begin_together_one_works(world: World) -> None:
    world.create(2)
    for partition in range(2):
        world.produce(*rows(4, 100 * partition), partition=partition)
    first, second = world.worker(ONE), world.worker(TWO)
    refused: list[Worker] = []

    def one_is_out() -> bool:
        for worker in (first, second):
            try:
                worker.step()
            except OtherPolicyError:
                refused.append(worker)
                return True
        return False

    world.until(one_is_out)
    [wrong] = refused
    wrong._transport.close()
    world.published(6, second if wrong is first else first)
    assert wrong.state.partitions == {}
    assert wrong.state.formed == []


@each_client
def test_a_group_is_handed_over_when_nobody_is_at_work(world: World) -> None:
    world.create(2)
    for partition in range(2):
        world.produce(*rows(4, 100 * partition), partition=partition)
    old = world.worker(ONE)
    world.published(6, old)
    tool = world.worker(TWO)._transport
    with pytest.raises(GroupInUseError, match="has members"):
        hand_over(tool, world.input, TWO, OLD)
    old.drain()
    old._transport.close()
    world.deserted()
    with pytest.raises(HandoverError, match="was written by"):
        hand_over(tool, world.input, TWO, "abcdef0123")
    assert hand_over(tool, world.input, TWO, f"trial@{OLD[:6]}") == 2
    assert hand_over(tool, world.input, TWO, OLD) == 2, "once more does no harm"
    with pytest.raises(OtherPolicyError, match=TWO.fingerprint.hex()):
        world.worker(ONE).run()
    world.produce(*rows(1, 50))
    world.published(9, world.worker(TWO))
    values = [record["v"] for record in world.read(level="read_uncommitted")]
    assert len(values) == len(set(values)) == 9


@each_client
def test_what_was_announced_is_not_handed_over(world: World) -> None:
    """Some readers may have seen it: the policy that announced it publishes it."""
    world.create()
    world.produce(*rows(3))
    world.announce_and_leave()
    tool = world.worker(TWO)._transport
    with pytest.raises(HandoverError, match="SIGTERM"):
        hand_over(tool, world.input, TWO, OLD)
    with pytest.raises(OtherPolicyError):
        world.worker(TWO).run()
    assert world.read(level="read_uncommitted") == []
    world.published(3, world.worker(ONE))


def test_the_commands_refuse_and_hand_over(world: World, tmp_path: Path) -> None:
    world.create(2)
    five = policy_on(world, tmp_path)
    eight = tmp_path / "eight.yaml"
    eight.write_text(five.read_text().replace("k: 4", "k: 8"))
    command = [sys.executable, "-m", "stream_anon"]

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=90, check=False)

    def produce(start: int) -> None:
        for i in range(start, start + 40):
            record = {"person": f"p{i}", "age": i % 90, "illness": "flu", "rid": i}
            world.produce(json.dumps(record).encode(), partition=i % 2)

    def policies() -> set[str]:
        return {record["_anon"]["policy"] for record in world.read()}

    def running(file: Path, done: Callable[[], bool]) -> None:
        process = subprocess.Popen([*command, "run", "-p", str(file), "--status-port", "0"], stderr=subprocess.DEVNULL)
        try:
            world.until(done)
            if file is five:
                refused = call("run", "-p", str(eight), "--status-port", "0")
                assert (refused.returncode, "handover" in refused.stderr) == (3, True), refused.stderr
                assert "policy of the group" in call("doctor", "-p", str(eight)).stderr
                assert call("doctor", "-p", str(five)).returncode == 0
                assert "has members" in call("handover", "-p", str(eight), "--from", next(iter(policies()))).stderr
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0

    produce(0)
    running(five, lambda: len(world.read()) >= 30)
    [old] = policies()
    world.deserted()
    moved = call("handover", "-p", str(eight), "--from", old)
    assert moved.returncode == 0, moved.stderr
    assert call("run", "-p", str(five), "--status-port", "0").returncode == 3
    produce(40)
    running(eight, lambda: len(policies()) == 2)
    sizes = {record["_anon"]["size"] for record in world.read() if record["_anon"]["policy"] != old}
    assert min(sizes) >= 8
    numbers = [record["rid"] for record in world.read(level="read_uncommitted")]
    assert len(numbers) == len(set(numbers))


# in memory


def fingerprints(world: memory_world.World) -> set[bytes]:
    codec = Codec.of(ONE.key)
    facts = world.broker.facts["in"]
    return {
        codec.decode(text, Place(facts.cluster_id, facts.topic_id, number, world.broker.group)).fingerprint
        for number, text in world.broker.committed.items()
    }


@pytest.mark.parametrize("seed", range(200))
def test_no_interleaving_mixes_two_policies(seed: int) -> None:
    """Workers of two policies join, are stopped, reassigned and refused in any order; the first ledger decides."""
    chance = random.Random(seed)
    world = memory_world.World(partitions=3)
    for partition in range(3):
        world.produce(*rows(7, 10 * partition), partition=partition)
    workers: dict[str, Worker] = {}
    for number in range(60):
        if len(workers) < 3:
            workers[f"w{number}"] = world.worker(f"w{number}", chance.choice([ONE, TWO]))
        name = chance.choice(list(workers))
        try:
            workers[name].step()
        except OtherPolicyError:
            workers.pop(name)._transport.close()
        if chance.random() < 0.1 and name in workers:
            workers.pop(name)
            world.broker.leave(name)
            world.broker.expire(name)
        world.now += chance.choice([0.0, 0.3, 2.0])
        assert len(fingerprints(world)) <= 1


def test_a_secret_is_changed_by_handing_over() -> None:
    world = memory_world.World()
    memory_world.publish_and_leave(world)
    tool, new = MemoryTransport(world.broker, "tool"), with_secret(ONE, b"another secret")
    with pytest.raises(HandoverError, match="--old-secret"):
        hand_over(tool, "in", new, OLD)
    assert hand_over(tool, "in", new, OLD, ONE.key) == 1
    world.produce(*memory_world.rows(2))
    world.go(world.worker("x", new))
    assert len(world.out()) == 6


@pytest.mark.parametrize("wrong", ["", "12345", "not hexadecimal", "visits@"])
def test_a_handover_needs_a_fingerprint(wrong: str) -> None:
    world = memory_world.World()
    memory_world.publish_and_leave(world)
    with pytest.raises(HandoverError, match="fingerprint"):
        hand_over(MemoryTransport(world.broker, "tool"), "in", TWO, wrong)
