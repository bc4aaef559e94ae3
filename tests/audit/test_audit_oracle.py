"""The auditor's measures against pycanon's, on outputs of the real anonymizers; and its scales against the core's.

pycanon counts records by equal quasi-identifiers, so each record is a person of its own here; where two groups look
alike, it measures them together.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from publishing import SHAPES, Published, people, publish
from pycanon_oracle import anonymity

from stream_anon.core.schema import Schema
from stream_anon.policy import load

SEEDS = range(6)
QUASI = ["age", "zip", "sex"]


def table(made: Published) -> pd.DataFrame:
    rows = [{name: json.dumps(record[name]) for name in (*QUASI, "ill")} for record in made.records()]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("model", ["k", "distinct"])
def test_pycanon_agrees(tmp_path: Path, model: str, seed: int) -> None:
    made = publish(tmp_path, "plain", model, "mondrian", people(80, seed))
    result, data = made.audit(), table(made)
    worst = result.sensitive["ill"]
    assert result.classes == len(data.groupby(QUASI))
    assert result.smallest_class == anonymity.k_anonymity(data, QUASI)
    if result.classes < result.groups:  # two groups look alike: together they are at least as diverse
        assert worst.distinct <= anonymity.l_diversity(data, QUASI, ["ill"])
        assert result.fewest_rows <= result.smallest_class
        return
    assert worst.distinct == anonymity.l_diversity(data, QUASI, ["ill"])
    alpha, k = anonymity.alpha_k_anonymity(data, QUASI, ["ill"])
    assert (worst.share, result.fewest_rows) == (pytest.approx(alpha, abs=1e-6), k)
    theirs = anonymity.entropy_l_diversity(data, QUASI, ["ill"])
    assert theirs in (math.floor(worst.effective + 1e-6), round(worst.effective) - 1)  # it cuts off what was rounded


@pytest.mark.parametrize("seed", SEEDS)
def test_pycanon_agrees_on_t(tmp_path: Path, seed: int) -> None:
    """The reference is the distribution of what was published."""
    made = publish(tmp_path, "plain", "k", "mondrian", people(80, seed))
    counts = table(made)["ill"].value_counts()
    close = {"model": "t_closeness", "attribute": "ill", "t": 1.0}
    close["reference"] = {json.loads(value): int(count) for value, count in counts.items()}
    policy = json.loads(made.policy.read_text())
    policy["privacy"].append(close)
    made.policy.write_text(json.dumps(policy))
    theirs = anonymity.t_closeness(table(made), QUASI, ["ill"])
    assert made.audit().sensitive["ill"].distance == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_scales_mean_what_the_core_means(tmp_path: Path, shape: str) -> None:
    """Every label the core gives a stretch of values is understood, costs the same and holds the same values."""
    made = publish(tmp_path, shape, "k", "l-incognito", people(40, seed=1, gaps=shape in ("gaps", "times")))
    schema, rules = Schema.compile(load(made.policy, {})), made.rules
    rng = np.random.default_rng(7)
    records = people(60, seed=9, gaps=True)
    for column in schema.quasi:
        values = [value_of(record, column.name) for record in records]
        values = [value for value in values if column.hierarchy.encode([value])[1] is None]
        scale, held = rules.quasi[column.name], 0
        places = np.array([scale.place(value) for value in values])
        assert not np.isnan(places).any()
        for _ in range(60):
            some = [values[i] for i in rng.integers(0, len(values), int(rng.integers(1, 4)))]
            codes = column.hierarchy.encode(some)[0]
            label, loss = named(column.hierarchy, codes)
            reading = scale.read(tuple(label) if isinstance(label, list) else label)
            assert not isinstance(reading, str), (column.name, reading)
            assert reading.least - 1e-9 <= loss <= reading.most + 1e-9
            covered = scale.covers(label, places)
            assert covered.tolist() == [column.hierarchy.contains(label, value) for value in values]
            held += int(covered.sum())
        assert held > 60


def named(hierarchy: Any, codes: Any) -> tuple[Any, float]:
    if hasattr(hierarchy, "label_of"):
        return hierarchy.label_of(codes), hierarchy.loss_of(codes)
    low, high = int(codes.min()), int(codes.max())
    return hierarchy.label(low, high), float(hierarchy.loss(np.array(low), np.array(high)))


def value_of(record: dict[str, Any], name: str) -> Any:
    found: Any = record
    for part in name.split("."):
        found = found[part]
    return found
