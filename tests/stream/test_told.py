"""What a run tells of its groups: which the buffer hurried, and which sensitive values had to be raised."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_anon.cli import run_command as run
from stream_anon.core.gate import Group, Reason
from stream_anon.core.schema import Schema
from stream_anon.local.pipeline import Pipeline
from stream_anon.observe.metrics import Metrics
from stream_anon.policy import load
from stream_anon.testing.memory import MemoryBroker, MemoryTransport
from stream_anon.worker.factory import core_of, settings_of
from stream_anon.worker.loop import Worker

POLICY = """
version: 1
name: told
subject: who
secret: a secret only for the tests, of some length
attributes:
  who: {{role: identifier}}
  age: {{role: quasi_identifier, type: integer, hierarchy: {{kind: interval, range: [0, 99], snap: [5, 10]}}}}
  ill:
    role: sensitive
    guarding_node: guard
    hierarchy: {{kind: tree, tree: {{any: {{lung: [flu, cough], gut: [ulcer, colitis]}}}}}}
privacy: [{{model: k_anonymity, k: {k}}}{more}]
stream: {stream}
kafka: {{bootstrap: "localhost:1", group: g, input: in, output: out, dead_letter: dead}}
"""
GUARDED = ", {model: guarding_node, attribute: ill, p: 0.4}"


def write(folder: Path, stream: str, k: int = 4, more: str = "") -> Path:
    (folder / "policy.yaml").write_text(POLICY.format(stream=stream, k=k, more=more))
    return folder / "policy.yaml"


def records(count: int, guard: str = "") -> list[bytes]:
    rng = np.random.default_rng(3)
    ills, ages = rng.choice(["flu", "flu", "flu", "ulcer"], count), rng.integers(0, 100, count)
    guards = [guard if ill == guard else "" for ill in ills]  # a guard is on the path to the value
    rows = [{"who": i, "age": int(ages[i]), "ill": str(ills[i]), "guard": guards[i]} for i in range(count)]
    return [json.dumps(row).encode() for row in rows]


def fed(policy: Path, count: int, rate: float) -> tuple[Pipeline, list[Group]]:
    pipeline, out = Pipeline(Schema.compile(load(policy))), list[Group]()
    for number, record in enumerate(records(count)):
        out += pipeline.tick(number / rate)
        out += pipeline.feed([(number, record)], number / rate)[0]
    return pipeline, out


def test_a_planned_sweep_is_no_hurry(tmp_path: Path) -> None:
    """Few arrivals within the bound: the buffer is swept at a part of it, as planned, and is nowhere near full."""
    pipeline, out = fed(write(tmp_path, "{max_delay: {time: 10s}}", k=20), 600, rate=20)
    forced = [group for group in out if group.reason is Reason.DEADLINE]
    assert forced
    assert any(np.ptp(group.arrived) < 9 for group in forced)  # they left before their time
    assert pipeline.hurried == 0


@pytest.mark.parametrize("k", [4, 20])
def test_a_full_buffer_hurries(tmp_path: Path, k: int) -> None:
    pipeline, _ = fed(write(tmp_path, "{max_delay: {time: 1h}, max_buffer: 60}", k=k), 600, rate=20)
    assert pipeline.hurried > 0


def raised_in(lines: list[dict[str, Any]]) -> int:
    return sum(record["ill"] in ("lung", "gut", "any") for record in lines)


def test_raised_values_are_told_by_pipe_and_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, raw = write(tmp_path, "{max_delay: {records: 40}}", more=GUARDED), tmp_path / "raw.jsonl"
    raw.write_bytes(b"\n".join(records(200, "flu")) + b"\n")
    command = [sys.executable, "-m", "stream_anon", "pipe", "-p", str(policy), "--json"]
    with raw.open("rb") as file:
        piped = subprocess.run(command, stdin=file, capture_output=True, check=True, timeout=300)
    summary, out = json.loads(piped.stderr), [json.loads(line) for line in piped.stdout.splitlines()]
    assert summary["raised"] == {"ill": raised_in(out)}
    assert summary["raised"]["ill"] > 0
    assert 0 < summary["loss_of_sensitive"]["ill"] < 1
    for options in (["--rate", "50"], ["-a", "guarding"]):
        target = tmp_path / f"out{len(options[1])}.jsonl"
        capsys.readouterr()
        assert run(["replay", str(raw), "-p", str(policy), "-o", str(target), *options]) == 0
        count = raised_in([json.loads(line) for line in target.read_text().splitlines()])
        assert f"ill: raised in {count:,} records" in " ".join(capsys.readouterr().err.split())


def test_raised_values_are_a_metric_of_the_worker(tmp_path: Path) -> None:
    schema = Schema.compile(load(write(tmp_path, "{max_delay: {time: 2s}}", more=GUARDED)))
    broker = MemoryBroker("in", partitions=1)
    broker.create_topic("out")
    broker.create_topic("dead")
    metrics, now = Metrics("told", schema.fingerprint, 2.0, ["age"]), [0.0]
    settings = settings_of(schema.policy)
    worker = Worker(MemoryTransport(broker, "w"), core_of(schema), settings, metrics, clock=lambda: now[0])
    for record in records(100, "flu"):
        broker.produce("in", 0, record)
    for _ in range(80):
        worker.step()
        now[0] += 0.05
    out = [json.loads(entry.value or b"") for entry in broker.read("out")]
    value = metrics.registry.get_sample_value("stream_anon_values_raised_total", {"attribute": "ill"})
    assert value == raised_in(out) > 0
