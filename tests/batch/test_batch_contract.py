"""What every batch algorithm must do under every model it honours, and refuse under every other."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import ATTRIBUTES, names, people, rows_of, schema_of

from stream_anon.batch import ALGORITHMS, build, partition
from stream_anon.core.batch import Batch
from stream_anon.core.judging.judge import Judge
from stream_anon.core.privacy import MODELS as PRIVACY_MODELS
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.testing.checks.batches import divides, honours, judge_partition, keeps_to_itself
from stream_anon.testing.contract.tables import POLICIES as MODELS

CASES = list(itertools.product(ALGORITHMS, MODELS))


def prepared(
    folder: Path, model: str, count: int = 160, seed: int = 0, persons: int | None = 400
) -> tuple[Batch, Schema]:
    schema = schema_of(folder, ATTRIBUTES, MODELS[model], subject="who")
    return rows_of(schema, people(count, seed, persons)), schema


@pytest.mark.parametrize(("name", "model"), CASES)
def test_contract(tmp_path: Path, name: str, model: str) -> None:
    if honours(name, model):
        divides(name, model)
        return
    rows, schema = prepared(tmp_path, model)
    with pytest.raises(Unsupported, match=name):
        partition(name, rows, schema)


def made_for(name: str) -> str:
    """Return the model that an algorithm is made for, or the simplest one."""
    model = ALGORITHMS[name].support.made_for
    return "k_anonymity" if model is None else model.in_words()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_published_columns(tmp_path: Path, name: str) -> None:
    """No column of the input that the policy does not publish, no number of a row, no index."""
    model = made_for(name)
    rows, schema = prepared(tmp_path, model)
    found = partition(name, rows, schema)
    for record in itertools.chain.from_iterable(group.records() for group in found.groups):
        assert set(record) == {"age", "zip", "sex", "job", "ill", "ward", "_anon"}
        assert set(record["_anon"]) == {"policy", "group", "row", "size", "subjects", "loss"}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_small_and_odd_tables(name: str) -> None:
    keeps_to_itself(name, made_for(name))


def test_the_judge_agrees_with_the_models(tmp_path: Path) -> None:
    """Compiled counting and the models themselves, on many small groups, with and without repeated people."""
    rng = np.random.default_rng(5)
    for model, persons in itertools.product(MODELS, (None, 40)):
        rows, schema = prepared(tmp_path, model, persons=persons)
        schema.requirements.observe(rows)
        judge = Judge(rows, schema)
        verdicts = []
        for _ in range(150):
            index = rng.choice(len(rows), rng.integers(1, 14), replace=False)
            verdicts.append(judge.holds(index))
            assert verdicts[-1] == schema.requirements.holds(rows.take(index)), (model, persons, index)
        assert any(verdicts) or not all(verdicts)


def test_a_set_needs_an_algorithm_that_thinks_in_sets(tmp_path: Path) -> None:
    attributes = ATTRIBUTES | {"job": names(kind="set", values=["nurse", "doctor", "cook", "baker", "clerk"])}
    schema = schema_of(tmp_path, attributes, MODELS["l_diversity (distinct)"], subject="who")
    rows = rows_of(schema, people(160))
    with pytest.raises(Unsupported, match="l-clustering"):
        partition("mondrian", rows, schema)
    for name in ("l-clustering", "l-incognito"):
        found = partition(name, rows, schema)
        assert all(isinstance(group.labels[3], list) for group in found.groups)


MISTAKES = [
    # remark, name, options, what the message must name
    ("a name nobody knows", "mondrain", {}, "mondrian"),
    ("an option nobody knows", "sweep", {"round": 2}, "round"),
    ("a value out of range", "sweep", {"rounds": -1}, "rounds"),
]


@pytest.mark.parametrize(("name", "options", "word"), [c[1:] for c in MISTAKES], ids=[c[0] for c in MISTAKES])
def test_mistakes_are_told(name: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(Unsupported, match=word):
        build(name, options)


def test_an_order_names_quasi_identifiers(tmp_path: Path) -> None:
    rows, schema = prepared(tmp_path, "k_anonymity")
    with pytest.raises(Unsupported, match='"sex"'):
        partition("mondrian", rows, schema, {"order": ["sexx"]})


def test_a_refusal_names_who_can(tmp_path: Path) -> None:
    rows, schema = prepared(tmp_path, "t_closeness")
    with pytest.raises(Unsupported, match="these can: mondrian, sweep, k-member, l-incognito"):
        partition("l-clustering", rows, schema)


def test_every_algorithm_says_what_it_honours() -> None:
    """And each model is honoured by some algorithm, in every form."""
    forms = [form for kind in PRIVACY_MODELS for form in kind.forms]
    assert {form.in_words() for form in forms} <= set(MODELS)
    for form in forms:
        assert any(algorithm.support.honours(form) for algorithm in ALGORITHMS.values()), form


@pytest.mark.parametrize("variant", ["strict", "relaxed"])
def test_mondrian_never_halves_below_k(tmp_path: Path, variant: str) -> None:
    for seed in range(5):
        rows, schema = prepared(tmp_path, "k_anonymity", count=90, seed=seed)
        found = partition("mondrian", rows, schema, {"variant": variant})
        assert min(group.people for group in found.groups) >= 4
        assert not len(found.suppressed)


def test_sweep_loses_least(tmp_path: Path) -> None:
    rows, schema = prepared(tmp_path, "k_anonymity", count=600, persons=None)

    def loss(name: str) -> float:
        return sum(group.loss * len(group.rows) for group in partition(name, rows, schema).groups)

    assert loss("sweep") < min(loss("mondrian"), loss("k-member"), loss("l-incognito"))


def test_a_lattice_too_large_is_sampled(tmp_path: Path) -> None:
    rows, schema = prepared(tmp_path, "k_anonymity")
    judge_partition(partition("sweep", rows, schema, {"most": 20}), rows, schema)
