"""What the real anonymizers publish passes, whatever the algorithm, the model, the hierarchies and the kind of file."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from publishing import MODELS, SHAPES, people, publish

from stream_anon.auditor.raw.original import read_original
from stream_anon.batch import ALGORITHMS
from stream_anon.errors import Unsupported

STREAM: dict[str, Mapping[str, Any]] = {
    "cail": {"name": "cail"},
    "cail standing": {"name": "cail", "clusters": "standing"},
    "castle": {"name": "castle"},
    "castle reusing": {"name": "castle", "reuse": True},
    "fads": {"name": "fads"},
    "fads reusing": {"name": "fads", "reuse": True},
}
SUFFIXES = (".jsonl", ".csv", ".parquet")
RUNS: dict[str, str | Mapping[str, Any]] = {**STREAM, **{name: name for name in ALGORITHMS}}
ONLY = {"l-clustering": "distinct", "lc-clustering": "lc", "guarding": "guards"}
"""Algorithms that are made for one model."""

EACH = 16
"""Clean outputs per algorithm, 208 in all: none of them may be called broken."""


def _sets(name: str) -> bool:
    """Whether the algorithm can publish sets of values."""
    return name in ALGORITHMS and ALGORITHMS[name].support.sets


def attempt(folder: Path, name: str, model: str, shape: str, seed: int) -> bool:
    """Publish and audit one table; whether the algorithm can honour the policy and published something."""
    folder.mkdir()
    records = people(40 + seed % 30, seed, persons=(None, 60)[seed % 2], gaps=shape in ("gaps", "times"))
    try:
        published = publish(folder, shape, model, RUNS[name], records, SUFFIXES[seed % 3])
    except Unsupported:
        return False
    if not published.out.stat().st_size:
        return False
    result = published.audit(raw=True)
    assert result.passed, (name, model, shape, seed, result.findings)
    assert result.raw is not None
    assert result.raw.matched == result.records
    return result.records > 0


@pytest.mark.parametrize("name", RUNS)
def test_clean_outputs_pass(tmp_path: Path, name: str) -> None:
    models = [ONLY[name]] if name in ONLY else MODELS
    cases = list(product(models, [shape for shape in SHAPES if shape != "sets" or _sets(name)]))
    random.Random(name).shuffle(cases)
    tried, passed = 0, 0
    for seed, (model, shape) in enumerate(cycle(cases)):
        passed += attempt(tmp_path / str(seed), name, model, shape, seed)
        tried = seed + 1
        if passed == EACH:
            break
        assert tried < 40 * EACH, "the algorithm publishes next to nothing"
    assert passed == EACH


def test_numbers_of_any_size_are_told_apart_as_they_are_published(tmp_path: Path) -> None:
    """Beyond 2^53 neighbours are one float, beyond 1e308 they are none: still they are two values, and no defect."""
    pays = [2**53, 2**53 + 1, 10**400, 10**400 + 1]
    rows = [{**row, "pay": pays[i % 4]} for i, row in enumerate(people(24, seed=2))]
    models = [{"model": "k_anonymity", "k": 4}, {"model": "l_diversity", "attribute": "pay", "l": 4}]
    published = publish(tmp_path, "gaps", "k", "mondrian", rows, privacy=models)
    assert {record["pay"] for record in published.records()} == set(pays)
    result = published.audit(raw=True)
    assert result.passed, result.findings


def test_a_number_names_one_person_however_it_is_written(tmp_path: Path) -> None:
    """The gate takes 7 and 7.0 for one person, and so does the auditor who counts them again."""
    rows = [{**row, "who": [i % 8, float(i % 8), str(i % 8)][i % 3]} for i, row in enumerate(people(48, seed=4))]
    made = publish(tmp_path, "plain", "k", "mondrian", rows)
    assert made.audit(raw=True).passed
    original = read_original(made.raw, made.rules)
    assert len(set(original.subject.tolist())) == 8
