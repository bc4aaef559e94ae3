"""Spelling makes neither a second value nor a second person, and what stands for nothing is no value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core.building import compile_policy
from hypothesis import given
from hypothesis import strategies as st

from stream_anon.auditor.auditor import audit_file
from stream_anon.auditor.policy import read_rules
from stream_anon.batch import partition
from stream_anon.cli import run_command as run
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.core.spelling import Spelling
from stream_anon.errors import PolicyError
from stream_anon.local.pipeline import Pipeline

POLICY = """
version: 1
name: ward
subject: who
secret: 0123456789abcdef0123456789abcdef
{top}
attributes:
  who: {{role: identifier{naming}}}
  age: {{role: quasi_identifier, type: integer, hierarchy: {{kind: interval, range: [0, 99], snap: [10]}}}}
  ill: {{role: sensitive{sensitive}}}
privacy: [{{model: k_anonymity, k: 2}}, {model}]
"""
DISTINCT = "{model: l_diversity, attribute: ill, l: 3}"
ONE_ILLNESS = ["hiv", "HIV", "Hiv ", "\uff28\uff29\uff36", "h\u200biv", "hiv\u00a0"]
MODELS = [
    # one illness and words for nothing satisfy none of these
    DISTINCT,
    "{model: l_diversity, attribute: ill, l: 2, variant: entropy}",
    "{model: l_diversity, attribute: ill, l: 2, variant: recursive, c: 3}",
    "{model: lc_anonymity, attribute: ill, l: 2, c: 0.9}",
    "{model: alpha_k, attribute: ill, k: 2, alpha: 0.9}",
    "{model: t_closeness, attribute: ill, t: 0.3, reference: {hiv: 1, flu: 1}}",
]
LEAF = ", missing: leaf"
TREE = ", hierarchy: {kind: tree, tree: {any: {a: [HIV, flu], b: [ulcer]}}}, unknown: leaf"


def compiled(folder: Path, model: str = DISTINCT, sensitive: str = "", naming: str = "", top: str = "") -> Schema:
    return compile_policy(folder, POLICY.format(model=model, sensitive=sensitive, naming=naming, top=top))


def encoded(schema: Schema, ills: list[Any], who: list[Any] | None = None) -> Any:
    names = [f"p{i}" for i in range(len(ills))] if who is None else who
    rows = [{"who": name, "age": 30, "ill": ill} for name, ill in zip(names, ills, strict=True)]
    ref = np.stack([np.zeros(len(rows), dtype=np.int64), np.arange(len(rows))], axis=1)
    return Encoder(schema).encode([json.dumps(row).encode() for row in rows], ref, np.zeros(len(rows)))


@pytest.mark.parametrize("sensitive", ["", TREE], ids=["free text", "a tree"])
def test_one_illness_in_six_spellings_is_one_value(tmp_path: Path, sensitive: str) -> None:
    schema = compiled(tmp_path, sensitive=sensitive)
    result = encoded(schema, ONE_ILLNESS)
    assert result.rejections == []
    assert len(set(result.batch.sensitive[:, 0].tolist())) == 1
    assert not schema.requirements.holds(result.batch)


def test_what_counts_as_a_difference_is_declared(tmp_path: Path) -> None:
    schema = compiled(tmp_path, sensitive=", normalize: [space]")
    assert len(set(encoded(schema, ["hiv", "HIV", "hiv "]).batch.sensitive[:, 0].tolist())) == 2


@pytest.mark.parametrize("word", [None, "", "N/A", " missing", "?", "NULL"])
def test_words_for_nothing_are_missing(tmp_path: Path, word: str | None) -> None:
    [rejection] = encoded(compiled(tmp_path), ["flu", word]).rejections
    assert (rejection.index, str(rejection.code), rejection.column) == (1, "missing", "ill")


def test_the_policy_lists_its_own_words(tmp_path: Path) -> None:
    schema = compiled(tmp_path, top="missing_values: [keine]")
    assert [r.index for r in encoded(schema, ["flu", "N/A", "Keine"]).rejections] == [2]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("tree", ["", TREE], ids=["free text", "a tree"])
def test_what_is_missing_is_never_diverse(tmp_path: Path, model: str, tree: str) -> None:
    """One illness and nothing do not hide each other, whichever model asks; two illnesses do."""
    schema = compiled(tmp_path, model, sensitive=tree + LEAF)
    alone = encoded(schema, [*ONE_ILLNESS, "N/A", None, "missing", "?"]).batch
    assert len(alone) == 10
    assert not schema.requirements.holds(alone)
    assert partition("sweep", alone, schema).groups == []
    several = encoded(schema, ["hiv", "flu", "ulcer", "hiv", "flu", "ulcer", "N/A"]).batch
    if "t_closeness" not in model:
        assert schema.requirements.holds(several)
    gains = schema.requirements.gains(alone, encoded(schema, ["N/A", "flu"]).batch)
    assert gains[0] == 0, "what is missing helps no model"


@pytest.mark.parametrize("ills", [ONE_ILLNESS, ["hiv", "N/A", "missing"]], ids=["spellings", "nothing"])
def test_the_auditor_is_not_deceived(tmp_path: Path, ills: list[str]) -> None:
    compiled(tmp_path, sensitive=LEAF)
    (tmp_path / "policy.yaml").write_text(POLICY.format(model=DISTINCT, sensitive=LEAF, naming="", top=""))
    group = {"policy": "ward@1", "group": "0" * 16, "size": len(ills), "subjects": len(ills), "loss": 0.1}
    lines = [{"age": [30, 39], "ill": ill, "_anon": group | {"row": i}} for i, ill in enumerate(ills)]
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = audit_file(tmp_path / "out.jsonl", read_rules(tmp_path / "policy.yaml"))
    assert "l_diversity" in {finding.code for finding in result.findings}
    assert result.sensitive["ill"].distinct == 1


def test_one_person_in_many_spellings_is_one(tmp_path: Path) -> None:
    schema = compiled(tmp_path)
    rows = encoded(schema, ["flu"] * 5, ["P1", "p1", "P1\u200b", " P1", "\uff301"]).batch
    assert len(set(rows.subject.tolist())) == 1
    assert not schema.requirements.holds(rows)
    strict = compiled(tmp_path, naming=", normalize: []")
    assert len(set(encoded(strict, ["flu"] * 2, ["P1", "p1"]).batch.subject.tolist())) == 2


def test_a_word_for_nothing_names_nobody(tmp_path: Path) -> None:
    assert [r.index for r in encoded(compiled(tmp_path), ["flu", "flu"], ["N/A", "p1"]).rejections] == [0]


def test_leaves_that_are_one_value_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="leaves-alike"):
        compiled(tmp_path, sensitive=", hierarchy: {kind: flat, values: [hiv, HIV, flu]}")
    compiled(tmp_path, sensitive=", hierarchy: {kind: flat, values: [hiv, HIV, flu]}, normalize: [space]")


def test_a_stream_counts_what_is_there(tmp_path: Path) -> None:
    """Half of the values are missing: every group that leaves is diverse in the others, and all is accounted for."""
    model = "{model: l_diversity, attribute: ill, l: 2}"
    schema = compiled(tmp_path, model, sensitive=LEAF)
    pipeline = Pipeline(schema)
    ills = [["N/A", "flu", None, "ulcer", "?", "FLU "][i * 7 % 6] for i in range(120)]
    groups = pipeline.push(encoded(schema, ills).batch, 0.0)
    groups += [group for some in pipeline.finish(1.0) for group in some]
    assert sum(map(len, groups)) + pipeline.tally.suppressed == 120
    assert groups
    for group in groups:
        values = {str(record["ill"]).strip().lower() for record in group.records()}
        assert len(values - {"n/a", "none", "?"}) >= 2


@pytest.mark.parametrize(("others", "told"), [(["FLU ", "ulcer"], True), (["ulcer", "gout"], False)])
def test_check_tells_a_diversity_that_nothing_can_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], others: list[str], told: bool
) -> None:
    ills = ["flu", "N/A", *others]
    rows = [{"who": f"p{i}", "age": 20 + i, "ill": ills[i % len(ills)]} for i in range(40)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "policy.yaml").write_text(POLICY.format(model=DISTINCT, sensitive=LEAF, naming="", top=""))
    assert run(["check", str(tmp_path / "policy.yaml"), "--data", str(tmp_path / "t.jsonl"), "--json"]) == 0
    found = {each["code"]: each for each in json.loads(capsys.readouterr().out)["diagnostics"]}
    assert ("l-above-values" in found) is told
    out = tmp_path / "out.jsonl"
    assert run(["anonymize", str(tmp_path / "t.jsonl"), "-p", str(tmp_path / "policy.yaml"), "-o", str(out)]) == 0
    assert (out.read_text() == "") is told


def test_near_equal_values_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Punctuation may be all that tells two values apart: nothing is guessed, but everybody is told."""
    ills = ["type 2", "type-2", "type 1", "-"] * 10
    rows = [{"who": f"p{i}", "age": 20 + i, "ill": ill} for i, ill in enumerate(ills)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "policy.yaml").write_text(POLICY.format(model=DISTINCT, sensitive="", naming="", top=""))
    assert run(["check", str(tmp_path / "policy.yaml"), "--data", str(tmp_path / "t.jsonl"), "--json"]) == 0
    found = [finding["code"] for finding in json.loads(capsys.readouterr().out)["diagnostics"]]
    assert {"values-nearly-equal", "value-like-missing"} <= set(found)
    out = str(tmp_path / "out.jsonl")
    assert run(["anonymize", str(tmp_path / "t.jsonl"), "-p", str(tmp_path / "policy.yaml"), "-o", out]) == 0
    capsys.readouterr()
    run(["audit", out, "-p", str(tmp_path / "policy.yaml"), "--json"])
    assert any("from another one only" in note for note in json.loads(capsys.readouterr().out)["notes"])


UNSEEN = [*"\x00\x07\x7f\u034f\u3164\uffa0\u2800\ufe0f\u180b\U000e0101\u200d\u2066"]


@pytest.mark.parametrize("unseen", UNSEEN, ids=ascii)
def test_what_nobody_sees_makes_no_second_value_or_person(tmp_path: Path, unseen: str) -> None:
    """Neither here nor in the auditor; alone it is nothing at all."""
    schema = compiled(tmp_path)
    ills, names = ["hiv", f"h{unseen}iv", f"hiv{unseen}"], ["p1", f"{unseen}p1", f"p{unseen}1"]
    result = encoded(schema, [*ills, unseen], [*names, "p4"])
    assert [(r.index, str(r.code)) for r in result.rejections] == [(3, "missing")]
    assert len(set(result.batch.sensitive[:, 0].tolist())) == len(set(result.batch.subject.tolist())) == 1
    judge = read_rules(tmp_path / "policy.yaml").sensitive["ill"]
    assert len(set(map(judge.code, ills))) == 1
    assert judge.comparison.is_missing(unseen)


def test_a_joiner_does_not_keep_an_accent_apart(tmp_path: Path) -> None:
    spellings = ["caf\u00e9", "cafe\u0301", "cafe\u034f\u0301"]
    assert len(set(encoded(compiled(tmp_path), spellings).batch.sensitive[:, 0].tolist())) == 1
    judge = read_rules(tmp_path / "policy.yaml").sensitive["ill"]
    assert len(set(map(judge.code, spellings))) == 1


def test_any_amount_of_space_within_is_one(tmp_path: Path) -> None:
    spellings = ["type 2", "type  2", "type\t2", "type\u00a0\n2 "]
    assert len(set(encoded(compiled(tmp_path), spellings).batch.sensitive[:, 0].tolist())) == 1
    judge = read_rules(tmp_path / "policy.yaml").sensitive["ill"]
    assert len(set(map(judge.code, spellings))) == 1
    assert judge.code("type2") != judge.code("type 2")


@pytest.mark.parametrize("turn", [1, -1])
def test_true_is_not_one_whichever_came_first(tmp_path: Path, turn: int) -> None:
    """A record with 1 used to decide what `true` meant from then on: another leaf, or none."""
    tree = ", hierarchy: {kind: tree, tree: {any: {a: ['1', 'no'], b: ['true']}}}, unknown: leaf"
    schema = compiled(tmp_path, sensitive=tree)
    codes = encoded(schema, [1, True, "1", "true"][::turn]).batch.sensitive[:, 0].tolist()[::turn]
    assert codes[0] == codes[2] != codes[1] == codes[3]
    judge = read_rules(tmp_path / "policy.yaml").sensitive["ill"]
    codes = judge.codes_of([1, True, "1", "true"][::turn])[::turn]
    assert codes[0] == codes[2] != codes[1] == codes[3]


odd = st.text(alphabet=st.sampled_from("aAbß é\n\t\x00 \u200b/nN"), max_size=6)
things = st.one_of(odd, st.none(), st.integers(), st.floats(), st.booleans())


@given(
    values=st.one_of(st.lists(odd, max_size=8), st.lists(things, max_size=8)),
    rules=st.sets(st.sampled_from(["unicode", "space", "case"])),
)
def test_many_are_spelled_like_each(values: list[object], rules: set[str]) -> None:
    spelling = Spelling(rules, ["n/a", "A"])
    assert spelling.each(values) == [spelling(value) for value in values]
