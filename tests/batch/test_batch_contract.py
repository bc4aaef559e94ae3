"""What every batch algorithm must do under every model it honours, and refuse under every other."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from making import ATTRIBUTES, names, people, rows_of, schema_of

from stream_anon.batch import ALGORITHMS, Partition, build, partition
from stream_anon.batch.support import check
from stream_anon.core.batch import Batch
from stream_anon.core.judging.judge import Judge
from stream_anon.core.privacy import MODELS as PRIVACY_MODELS
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported

K = {"model": "k_anonymity", "k": 4}
ON = {"attribute": "ill"}
REFERENCE = {"flu": 6, "cough": 4, "asthma": 3, "ulcer": 3, "gastritis": 2, "colitis": 2}
DEMANDS = {"ulcer": {"l": 4, "sensitivity": 0.9}, "flu": {"l": 2, "sensitivity": 0.1}}
CLOSE = {"model": "t_closeness"} | ON
MODELS: dict[str, list[dict[str, Any]]] = {
    "k_anonymity": [K],
    "l_diversity (distinct)": [K, {"model": "l_diversity", "l": 3} | ON],
    "l_diversity (entropy)": [K, {"model": "l_diversity", "l": 2, "variant": "entropy"} | ON],
    "l_diversity (recursive)": [K, {"model": "l_diversity", "l": 2, "variant": "recursive", "c": 2.0} | ON],
    "lc_anonymity": [K, {"model": "lc_anonymity", "l": 2, "c": 0.6, "values": DEMANDS} | ON],
    "alpha_k": [{"model": "alpha_k", "k": 4, "alpha": {"flu": 0.5, "ulcer": 0.4}, "default": 0.75} | ON],
    "alpha_k from wishes": [{"model": "alpha_k", "k": 4, "estimate": {"after": 100}, "floor": 0.4} | ON],
    "t_closeness": [K, CLOSE | {"t": 0.4, "reference": REFERENCE}],
    "t_closeness ordered": [K, CLOSE | {"t": 0.4, "distance": "ordered", "estimate": {"after": 9}}],
    "guarding_node": [K, {"model": "guarding_node", "p": 0.6} | ON],
    "several": [K, {"model": "l_diversity", "l": 2} | ON, CLOSE | {"t": 0.5, "reference": REFERENCE}],
}


def can(name: str, schema: Schema) -> bool:
    try:
        check(name, schema)
    except Unsupported:
        return False
    return True


CASES = list(itertools.product(ALGORITHMS, MODELS))


def prepared(
    folder: Path, model: str, count: int = 160, seed: int = 0, persons: int | None = 400
) -> tuple[Batch, Schema]:
    schema = schema_of(folder, ATTRIBUTES, MODELS[model], subject="who")
    return rows_of(schema, people(count, seed, persons)), schema


def judge_all(found: Partition, rows: Batch, schema: Schema) -> None:
    """Each row once; groups pass the gate by themselves; rows lie in their boxes; people are counted."""
    indices = [*found.classes, found.suppressed]
    assert sorted(np.concatenate(indices).tolist()) == list(range(len(rows)))
    for group, index in zip(found.groups, found.classes, strict=True):
        assert sorted(group.rows.ref[:, 1].tolist()) == sorted(rows.ref[index, 1].tolist())
        assert schema.requirements.holds(rows.take(index))
        assert group.people == len(set(rows.subject[index].tolist())) >= 4
        assert (group.rows.qi >= group.low).all()
        assert (group.rows.qi <= group.high).all()


@pytest.mark.parametrize(("name", "model"), CASES)
def test_contract(tmp_path: Path, name: str, model: str) -> None:
    rows, schema = prepared(tmp_path, model)
    if not can(name, schema):
        with pytest.raises(Unsupported, match=name):
            partition(name, rows, schema)
        return
    found = partition(name, rows, schema, seed=3)
    judge_all(found, rows, schema)
    assert len(found.suppressed) <= 0.5 * len(rows)
    again = partition(name, rows, schema, seed=3)
    assert [index.tolist() for index in again.classes] == [index.tolist() for index in found.classes]
    assert [group.id for group in again.groups] == [group.id for group in found.groups]
    shuffled = rows.take(np.random.default_rng(1).permutation(len(rows)))
    judge_all(partition(name, shuffled, schema, seed=3), shuffled, schema)


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
@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_rows_are_suppressed(tmp_path: Path, name: str, count: int) -> None:
    model = made_for(name)
    rows, schema = prepared(tmp_path, model, count=count, persons=None)
    found = partition(name, rows, schema)
    assert (len(found.groups), len(found.suppressed)) == (0, count)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_person_is_never_a_crowd(tmp_path: Path, name: str) -> None:
    model = made_for(name)
    rows, schema = prepared(tmp_path, model, count=60, persons=3)
    assert not partition(name, rows, schema).groups


@pytest.mark.parametrize("name", ALGORITHMS)
def test_equal_rows_lose_nothing(tmp_path: Path, name: str) -> None:
    model = made_for(name)
    schema = schema_of(tmp_path, ATTRIBUTES, MODELS[model], subject="who")
    one, ills = people(1)[0], ["flu", "ulcer", "cough", "asthma"]
    records = [one | {"who": str(i), "ill": ills[i % 4], "guard": ""} for i in range(24)]
    found = partition(name, rows_of(schema, records), schema)
    assert not len(found.suppressed)
    assert max(group.loss for group in found.groups) == 0.0


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
    judge_all(partition("sweep", rows, schema, {"most": 20}), rows, schema)
