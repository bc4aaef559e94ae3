"""Nothing is left to compile when a clock runs: warming up covers the policy at hand, and asks nothing else of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import ALGORITHMS, POLICIES, row_of, schema_of
from test_told import GUARDED, write
from test_vector2 import schema as figure

from stream_anon.core.encode import Encoder
from stream_anon.core.judging.judge import Judge
from stream_anon.core.kernels import COMPILED
from stream_anon.core.privacy.guarding_node import GuardingNode
from stream_anon.core.schema import Schema
from stream_anon.local.warmup import warm_up
from stream_anon.policy import load
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.stream import build

pytestmark = pytest.mark.skipif(not COMPILED, reason="numba is not installed")
STREAM = StreamSettings(max_delay=MaxDelay(time=5.0, records=10_000))


def known() -> dict[str, int]:
    """How many kinds of arguments each kernel was compiled for."""
    return {
        f"{module}.{name}": len(thing.signatures)
        for module, content in list(sys.modules.items())
        if module.startswith("stream_anon")
        for name, thing in vars(content).items()
        if hasattr(thing, "signatures") and hasattr(thing, "py_func")
    }


def work(schema: Schema) -> None:
    payloads = [json.dumps(row_of(number * 7_919_773)).encode() for number in range(300)]
    ref = np.stack([np.zeros(300, dtype=np.int64), np.arange(300)], axis=1)
    rows = Encoder(schema).encode(payloads, ref, np.arange(300) / 60).batch
    engine = build(schema)
    for start in range(0, 300, 25):
        engine.push(rows.take(slice(start, start + 25)), start / 60)
    engine.tick(99.0)
    engine.flush()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_finds_its_kernels_compiled(policy: str, algorithm: str) -> None:
    schema = schema_of(policy, algorithm, STREAM)
    warm_up(schema)
    before = known()
    work(schema)
    assert known() == before
    assert sum(before.values()) > 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_a_model_learns_is_not_made_up(algorithm: str) -> None:
    """A running estimate knows nothing of the rows that warmed it."""
    schema = schema_of("t, estimated", algorithm, STREAM)
    before = json.dumps([vars(model).keys() and repr(model) for model in schema.requirements.models])
    warm_up(schema)
    assert json.dumps([vars(model).keys() and repr(model) for model in schema.requirements.models]) == before


def test_a_policy_only_trees_can_serve_is_warmed_up(tmp_path: Path) -> None:
    """It uses the policy at hand alone: no other one has to be fit for its settings."""
    warm_up(figure(tmp_path))


def test_guards_that_made_up_rows_could_not_satisfy_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start under guarding nodes once took over a minute: groups were searched that no rows could form."""
    judged, tried = [], []
    each, repair = Judge.each, GuardingNode.repair
    monkeypatch.setattr(Judge, "each", lambda self, starts: (judged.append(1), each(self, starts))[1])
    monkeypatch.setattr(GuardingNode, "repair", lambda self, rows: (tried.append(1), repair(self, rows))[1])
    warm_up(Schema.compile(load(write(tmp_path, "{max_delay: {records: 40}}", more=GUARDED))))
    assert judged
    assert len(tried) < 5_000
