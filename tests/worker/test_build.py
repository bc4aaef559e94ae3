"""A worker from a policy: what is refused, with its place; and the real core behind the loop."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stream_anon.cli.prepare import prepare
from stream_anon.observe.metrics import Metrics
from stream_anon.testing.memory import MemoryTransport
from stream_anon.testing.memory_log import MemoryBroker
from stream_anon.worker.factory import core_of, problems, settings_of
from stream_anon.worker.loop import Worker

POLICY = """
version: 1
name: trial
secret: a secret only for the tests, of no value
subject: person
attributes:
  person: {role: identifier}
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: none}}
  illness: {role: sensitive, type: category}
  rid: {role: insensitive}
privacy: [{model: k_anonymity, k: 4}]
stream: {max_delay: {time: 2s, records: 10000}}
algorithm: {name: fads}
kafka: {bootstrap: "localhost:1", group: g, input: in, output: out, dead_letter: dead}
"""


def policy(folder: Path, **changes: str) -> Path:
    lines = [line for line in POLICY.splitlines() if line.partition(":")[0] not in changes]
    file = folder / "policy.yaml"
    file.write_text("\n".join([*lines, *(f"{key}: {value}" for key, value in changes.items() if value)]))
    return file


CASES = [
    ({"secret": ""}, "no-secret", "a successor could not repeat"),
    ({"kafka": ""}, "no-kafka", "nowhere to read from"),
    ({"algorithm": "{name: castle, reuse: true}"}, "reuse", "an old box is not in the members"),
    ({"privacy": "[{model: k_anonymity, k: 900}]"}, "k-too-large", "no ledger could announce it"),
]


@pytest.mark.parametrize(("changes", "code", "remark"), CASES, ids=[case[1] for case in CASES])
def test_what_cannot_be_repeated_is_refused(tmp_path: Path, changes: dict[str, str], code: str, remark: str) -> None:
    loaded, _ = prepare(policy(tmp_path, **changes))
    assert [problem.code for problem in problems(loaded.policy)] == [code]


def world(tmp_path: Path, partitions: int = 2, **changes: str) -> tuple[MemoryBroker, Worker, Metrics, list[float]]:
    loaded, schema = prepare(policy(tmp_path, **changes))
    assert not problems(loaded.policy)
    broker = MemoryBroker("in", partitions=partitions)
    broker.create_topic("out")
    broker.create_topic("dead")
    metrics = Metrics("trial", schema.fingerprint, 2.0, ["age"])
    now = [0.0]
    worker = Worker(
        MemoryTransport(broker, "w"), core_of(schema), settings_of(loaded.policy), metrics, clock=lambda: now[0]
    )
    return broker, worker, metrics, now


def test_the_real_core_behind_the_loop(tmp_path: Path) -> None:
    broker, worker, metrics, now = world(tmp_path)
    rng = np.random.default_rng(1)
    for i in range(403):
        record = {"person": f"p{i}", "age": int(rng.integers(0, 99)), "illness": "flu", "rid": i, "extra": "SECRET"}
        broker.produce("in", i % 2, json.dumps(record).encode())
    broker.produce("in", 0, b"not json SECRET")
    for _ in range(60):
        worker.step()
        now[0] += 0.05
    out = [json.loads(e.value or b"") for e in broker.read("out")]
    value = metrics.registry.get_sample_value
    suppressed = value("stream_anon_records_suppressed_total", {"reason": "deadline"}) or 0
    assert len(out) + suppressed == 403
    assert len({record["rid"] for record in out}) == len(out)
    assert all(record["_anon"]["subjects"] >= 4 for record in out)
    assert all(record["age"][0] <= record["age"][1] for record in out)
    assert value("stream_anon_deadlines_missed_total") == 0
    assert value("stream_anon_records_published_total") == len(out)
    assert value("stream_anon_record_delay_seconds_count") == len(out)
    assert value("stream_anon_records_rejected_total", {"code": "not_json"}) == 1
    both = b"".join(e.value or b"" for topic in ("out", "dead") for e in broker.read(topic, False))
    assert b"SECRET" not in both
    assert broker.committed[0].offset == len(broker.topics["in"][0].entries)


def test_an_idle_topic_meets_its_deadline(tmp_path: Path) -> None:
    broker, worker, metrics, now = world(tmp_path)
    for i in range(5):
        broker.produce("in", 0, json.dumps({"person": f"p{i}", "age": 20 * i % 99, "illness": "x", "rid": i}).encode())
    while now[0] < 3.0 and not broker.read("out"):
        worker.step()
        now[0] += 0.02
    assert len(broker.read("out")) >= 4
    assert now[0] <= 2.0
    assert metrics.registry.get_sample_value("stream_anon_deadlines_missed_total") == 0


def test_open_clusters_are_told_where_an_algorithm_keeps_some(tmp_path: Path) -> None:
    broker, worker, metrics, _ = world(tmp_path, algorithm="{name: castle}")
    for i, age in enumerate((10, 90)):
        broker.produce("in", 0, json.dumps({"person": f"p{i}", "age": age, "illness": "x", "rid": i}).encode())
    for _ in range(3):
        worker.step()
    assert metrics.registry.get_sample_value("stream_anon_buffered_records") == 2
    assert metrics.registry.get_sample_value("stream_anon_open_clusters") == 2
