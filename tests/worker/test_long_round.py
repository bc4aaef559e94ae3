"""A round that takes long: status, lag and signals are answered from outside it, and its time is bounded."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fifo import Fifo, Outcome, fifo_core
from memory_world import World, rows
from msgspec.structs import replace
from test_observe import get

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.policy.policy import Policy
from stream_anon.stream import Engine, build
from stream_anon.stream.joint.pools import LARGEST
from stream_anon.stream.outcome import always
from stream_anon.worker.pace.round_budget import RoundBudget
from stream_anon.worker.state import state

_LAG = 'stream_anon_consumer_lag_records{partition="0"}'


def until(found: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Wait for something that another process does; tell whether it did."""
    end = time.monotonic() + seconds
    while not found():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@contextmanager
def computing(*options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A worker in the middle of a call that does not return, and the port of its status."""
    script = Path(__file__).with_name("long_round.py")
    process = subprocess.Popen([sys.executable, str(script), *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert process.stdout.readline() == "computing\n"
        yield process, port
    finally:
        process.kill()
        process.wait()


def test_status_lag_and_signals_are_answered_while_a_round_computes() -> None:
    with computing() as (process, port):
        assert get(port, "/livez") == (200, "ok\n")
        assert get(port, "/readyz") == (200, "ok\n")
        assert until(lambda: f"{_LAG} 7.0" in get(port, "/metrics")[1])
        process.send_signal(signal.SIGTERM)
        assert until(lambda: get(port, "/readyz") == (503, "no\nstopping\n"))
        assert process.poll() is None, "the call has not returned yet"


AGES = {"kind": "interval", "range": [0, 99], "snap": [5, 10]}


def due_at_once(rows: int, algorithm: str = "cail", bound: str | int = "5s") -> tuple[Engine, Batch]:
    """An engine, and rows that are all due five seconds after they came, or so many later arrivals."""
    policy = Policy.model_validate(
        {
            "version": 1,
            "name": "burst",
            "subject": "person",
            "attributes": {
                "person": {"role": "identifier"},
                "age": {"role": "quasi_identifier", "type": "integer", "hierarchy": AGES},
            },
            "privacy": [{"model": "k_anonymity", "k": 5}],
            "stream": {"max_delay": {"time" if isinstance(bound, str) else "records": bound}},
            "algorithm": {"name": algorithm},
        }
    )
    schema, rng = Schema.of(policy), random.Random(1)
    values = [json.dumps({"person": i, "age": rng.randrange(100)}).encode() for i in range(rows)]
    ref = np.stack([np.zeros(rows, np.int64), np.arange(rows)], axis=1)
    return build(schema), Encoder(schema).encode(values, ref, np.zeros(rows)).batch


def test_a_call_that_took_long_enough_goes_on_in_the_next_round() -> None:
    """Every row still leaves exactly once, the oldest first; without the rule all of them leave in one call."""
    engine, rows = due_at_once(20_000)
    left = [ref for group in engine.push(rows, 0.0).groups for ref in group.members.tolist()]
    calls = []
    while (deadline := engine.next_deadline()) is not None and deadline <= 9.0:
        found = engine.tick(9.0, more=lambda: False).groups
        calls.append(len(found))
        left += [ref for group in found for ref in group.members.tolist()]
    assert len(calls) > 1
    assert all(calls), "each call finishes something"
    assert sorted(left) == rows.ref.tolist()


@pytest.mark.parametrize("algorithm", ["cail", "castle", "fads"])
def test_rows_due_by_their_number_go_on_in_the_next_round(algorithm: str) -> None:
    """A burst of rows that overtake those who wait does not hold up a round either."""
    engine, rows = due_at_once(400, algorithm, bound=100)
    left: list[list[int]] = []

    def note(found: Outcome) -> int:
        left.extend(ref for group in found.groups for ref in group.members.tolist())
        return len(found.groups)

    engine.take_back(rows.take(slice(0, 300)))  # they are old, and all of them are due
    begun = note(engine.push(rows.take(slice(300, 400)), 0.0, more=lambda: False))
    assert engine.next_deadline() in (None, -math.inf)
    while engine.next_deadline() is not None:
        begun += note(engine.tick(0.0, more=lambda: False)) > 0
    waiting = engine.waiting().ref.tolist()
    assert len(waiting) <= 100
    assert sorted(left + waiting) == rows.ref.tolist()


@pytest.mark.parametrize("algorithm", ["castle", "fads"])
def test_a_flush_ends_when_its_time_is_over(algorithm: str) -> None:
    """What it did not come to waits on, for a successor; whole groups leave, each row once."""
    engine, rows = due_at_once(400, algorithm)
    engine.push(rows, 0.0)
    inside = len(engine)
    found = engine.flush(more=lambda: False)
    left = [ref for group in found.groups for ref in group.members.tolist()]
    assert 5 <= len(left) < inside
    assert len(left) + len(engine) == inside
    assert not {*map(tuple, left)} & {*map(tuple, engine.waiting().ref.tolist())}


def test_a_worker_that_stops_forms_groups_for_half_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    worker = world.worker(drain_seconds=4.0)
    asked = []

    def flush(more: Callable[[], bool]) -> list[Outcome]:
        for world.now in (0.0, 1.9, 2.1):
            asked.append(more())
        return []

    monkeypatch.setattr(worker.state.engines, "flush", flush)
    worker.drain()
    assert asked == [True, True, False]


def left_early(rows: int, more: Callable[[], bool]) -> int:
    """How many rows leave before they are due, when a thousand come shortly before."""
    engine, batch = due_at_once(rows + 1_000)
    for at in range(0, rows, 2_000):
        engine.push(batch.take(slice(at, at + 2_000)), 0.0)
    waiting = len(engine)
    young = replace(batch.take(slice(rows, None)), arrived=np.full(1_000, 4.95))
    engine.push(young, 4.95, more)
    return waiting + 1_000 - len(engine)


def test_what_leaves_early_can_wait_for_another_round() -> None:
    some, most = left_early(40_000, lambda: False), left_early(40_000, always)
    assert 0 < some <= LARGEST
    assert most >= 3 * some


def test_a_stop_ends_the_work_of_a_round() -> None:
    budget = RoundBudget(bound=4.0, clock=lambda: 0.0)
    budget.start()
    assert budget.more()
    budget.end()
    assert not budget.more()


def test_a_worker_publishes_everything_in_rounds_without_time() -> None:
    """However little a round may do, it does something."""
    world = World()
    world.produce(*rows(600))
    worker = world.worker(poll_records=50)
    worker.state.round.end()
    world.go(worker, rounds=40)
    assert len(world.out()) == 600


def test_no_group_is_looked_for_while_many_wait_to_be_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formed rows take the most memory, so they are announced before others follow; all of them are published."""
    monkeypatch.setattr(state, "_FEW", 20)
    ticked: list[bool] = []

    class Watched(Fifo):
        def tick(self, now: float, *, more: Callable[[], bool] = always) -> Outcome:
            ticked.append(worker.state.laden)
            return super().tick(now, more=more)

    world = World()
    world.produce(*rows(60))
    core = dataclasses.replace(fifo_core(delay=0.1), engine=lambda: Watched(3, 0.1, b"policy one"))
    worker = world.worker(core=core, poll_records=30)
    laden = []
    for _ in range(12):
        world.go(worker, rounds=1)
        laden.append(worker.state.laden)
    assert any(laden), "the rows of one poll are more than may wait"
    assert not laden[-1]
    assert ticked
    assert not any(ticked)
    assert len(world.out()) == 60
