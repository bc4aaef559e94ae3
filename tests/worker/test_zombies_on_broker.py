"""Workers that stand still, lose their place and go on as if nothing were, on a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from broker_world import World, each_client, notes, policy_on, rows
from fifo import fifo_core

from stream_anon.cli.prepare import prepare
from stream_anon.worker.factory import core_of


@each_client
def test_a_zombie_of_an_evicted_generation_changes_nothing(world: World) -> None:
    """The first worker stands still past its poll interval with a group announced, then goes on as if nothing were."""
    world.create()
    world.produce(*rows(4))
    zombie = world.worker(options={"max.poll.interval.ms": 6000})
    world.until(lambda: any(p.announced for p in zombie.state.partitions.values()), zombie)
    world.deserted()
    successor = world.worker()
    world.published(3, successor)
    world.produce(*rows(2, 10))
    world.published(6, successor)
    before = world.committed()
    zombie.transact()
    assert ("transaction", "aborted") in notes(zombie).seen
    assert world.committed() == before
    assert len(world.read()) == 6


@each_client
def test_there_and_back_again(world: World) -> None:
    """All goes to another worker and comes back while the first stands still: its state is stale, and it knows."""
    world.create()
    world.produce(*rows(5))
    first = world.worker(core=fifo_core(k=6), options={"max.poll.interval.ms": 6000})
    world.until(lambda: first.state.waiting == 5, first)
    first.transact()
    world.deserted()
    second = world.worker()
    world.published(3, second)
    second.drain()
    second._transport.close()
    world.produce(*rows(4, 10))
    world.published(9, first)
    values = [record["v"] for record in world.read(level="read_uncommitted")]
    assert len(values) == len(set(values)) == 9


def test_a_zombie_stopped_inside_a_transaction_changes_nothing(world: World, tmp_path: Path) -> None:
    """SIGSTOP with records sent and not committed, eviction, a successor that publishes, SIGCONT."""
    world.create()
    file = policy_on(world, tmp_path)
    _, schema = prepare(file)
    log = tmp_path / "log"
    script = Path(__file__).parents[1] / "chaos" / "worker.py"
    with log.open("wb") as out:
        zombie = subprocess.Popen([sys.executable, str(script), str(file), "--dwell", "4"], stdout=out, stderr=out)
    try:
        for number in range(12):
            world.produce(json.dumps({"person": f"p{number}", "age": 30, "illness": "x", "rid": number}).encode())
        world.until(lambda: bool(world.read(level="read_uncommitted")), timeout=60)
        zombie.send_signal(signal.SIGSTOP)
        assert world.read() == []
        world.deserted()
        successor = world.worker(core_of(schema), delay=2.0)
        world.published(12, successor)
        before = world.committed()
        zombie.send_signal(signal.SIGCONT)
        world.until(lambda: b"transaction failed" in log.read_bytes() or zombie.poll() is not None)
        assert world.committed() == before
    finally:
        zombie.kill()
        zombie.wait()
    seen = world.read(level="read_uncommitted")
    assert len(seen) > 12, "the zombie's records are there for whoever reads uncommitted"
    assert len({(record["rid"], record["_anon"]["group"]) for record in seen}) == 12
    assert len({(record["_anon"]["group"], record["_anon"]["row"]) for record in seen}) == 12
    assert sorted(record["rid"] for record in world.read()) == list(range(12))
