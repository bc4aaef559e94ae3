"""Columns of many values: prices looked up among peaks are those of the hierarchy, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stream_anon
from stream_anon.batch.shared import dense as module
from stream_anon.batch.shared.dense import PEAKS, densify, stretch
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema

CODES = [f"{i * 37:05d}" for i in range(700)]
TREE = {f"g{a}": {f"h{a}.{b}": CODES[a * 70 + b * 10 :][:10] for b in range(7)} for a in range(10)}
HIERARCHIES: dict[str, dict[str, Any]] = {
    "prefix": {"kind": "prefix", "length": 5},
    "tree": {"kind": "tree", "tree": {"any": TREE}},
}


@pytest.mark.parametrize("kind", HIERARCHIES)
def test_peaks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TABLE_LIMIT", 16)
    attribute = {"role": "quasi_identifier", "type": "category", "hierarchy": HIERARCHIES[kind], "missing": "leaf"}
    policy = stream_anon.Policy.model_validate(
        {
            "version": 1,
            "name": "codes",
            "attributes": {"code": attribute, "illness": {"role": "sensitive"}},
            "privacy": [{"model": "k_anonymity", "k": 2}],
        }
    )
    schema = Schema.of(policy)
    rng = np.random.default_rng(0)
    records: list[Any] = [
        {"code": CODES[i] if i else None, "illness": "flu"} for i in rng.integers(0, 700, 400).tolist()
    ]
    ref = np.stack([np.zeros(400, dtype=np.int64), np.arange(400)], axis=1)
    dense, _ = densify(Encoder(schema).encode(records, ref, np.zeros(400)).batch, schema)
    if kind == "prefix":
        assert dense.size[0] == PEAKS
    points = dense.points(0)
    low, high = np.sort(rng.integers(0, len(points), (2, 500)), axis=0)
    found = [stretch(dense, 0, a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    assert found == schema.quasi[0].hierarchy.loss(points[low], points[high]).tolist()
