"""What a policy names by value (l, alpha and weights per value) reaches the models, inline or from a file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from building import batch, patients

from stream_anon.core.privacy import AlphaK, LCAnonymity, TCloseness
from stream_anon.core.schema import Schema
from stream_anon.errors import PolicyError
from stream_anon.policy import load

K = "{model: k_anonymity, k: 2}"


def code(schema: Schema, value: object) -> int:
    return int(schema.sensitive[0].encode([value])[0][0])


DEMANDS = [
    # remark, settings, file
    ("inline", "values: {flu: {l: 4, sensitivity: 0.1}, ulcer: {l: 3}}", ""),
    ("from a file", "values: demands.csv", "value;l;sensitivity\nflu;4;0.1\nulcer;3;0.9\n"),
]


@pytest.mark.parametrize(("values", "file"), [c[1:] for c in DEMANDS], ids=[c[0] for c in DEMANDS])
def test_l_per_value(tmp_path: Path, values: str, file: str) -> None:
    (tmp_path / "demands.csv").write_text(file)
    schema = patients(tmp_path, K, f"{{model: lc_anonymity, attribute: illness, l: 2, c: 1, {values}}}")
    [_, model] = schema.requirements.models
    assert isinstance(model, LCAnonymity)
    assert model.demands == {code(schema, "flu"): 4, code(schema, "ulcer"): 3}
    cough, asthma = code(schema, "cough"), code(schema, "asthma")
    assert model.shortfall(batch([cough, asthma])) == 0.0
    assert model.shortfall(batch([cough, code(schema, "flu")])) == 2.0
    assert model.shortfall(batch([cough, code(schema, "ulcer")])) == 1.0


ALPHAS = [
    # remark, settings, file, alpha of flu, alpha of the others
    ("one for all", "alpha: 0.4", "", 0.4, 0.4),
    ("inline", "alpha: {flu: 0.3}", "", 0.3, 1.0),
    ("inline with a default", "alpha: {flu: 0.3}, default: 0.6", "", 0.3, 0.6),
    ("from a file", "alpha: alphas.csv, default: 0.7", "value;alpha\nflu;0.25\n", 0.25, 0.7),
]


@pytest.mark.parametrize(("alpha", "file", "flu", "others"), [c[1:] for c in ALPHAS], ids=[c[0] for c in ALPHAS])
def test_alpha_per_value(tmp_path: Path, alpha: str, file: str, flu: float, others: float) -> None:
    (tmp_path / "alphas.csv").write_text(file)
    schema = patients(tmp_path, f"{{model: alpha_k, attribute: illness, k: 4, {alpha}}}")
    [model] = schema.requirements.models
    assert isinstance(model, AlphaK)
    assert (model.alpha_of(code(schema, "flu")), model.alpha_of(code(schema, "cough"))) == (flu, others)


WEIGHTS = [
    ("inline", "reference: {ulcer: 1, flu: 2, cough: 1}", ""),
    ("in any order", "reference: {cough: 1, ulcer: 1, flu: 2}", ""),
    ("from a file", "reference: weights.csv", "value;weight\nflu;50\ncough;25\nulcer;25\n"),
]


@pytest.mark.parametrize(("reference", "file"), [c[1:] for c in WEIGHTS], ids=[c[0] for c in WEIGHTS])
def test_reference_of_closeness(tmp_path: Path, reference: str, file: str) -> None:
    (tmp_path / "weights.csv").write_text(file)
    settings = f"{{model: t_closeness, attribute: illness, t: 0.25, distance: ordered, {reference}}}"
    schema = patients(tmp_path, K, settings)
    model = schema.requirements.models[1]
    assert isinstance(model, TCloseness)
    ulcer, flu, cough = (code(schema, value) for value in ("ulcer", "flu", "cough"))
    assert ulcer < flu < cough, "the order of the tree"
    # (1/2, 1/2, 0) against (1/4, 1/2, 1/4): a quarter moves two steps of two
    assert model.distance(np.array([ulcer, flu]), np.array([1, 1])) == pytest.approx(0.25)
    assert model.shortfall(batch([ulcer, flu])) == 0.0
    assert model.shortfall(batch([ulcer, ulcer])) > 0.0


UNKNOWN = [
    # remark, model
    ("an l for no value", "{model: lc_anonymity, attribute: illness, c: 1, values: {flue: {l: 2}}}"),
    ("an alpha for no value", "{model: alpha_k, attribute: illness, k: 2, alpha: {flue: 0.5}}"),
    ("a weight for no value", "{model: t_closeness, attribute: illness, t: 0.5, reference: {flue: 1}}"),
]


@pytest.mark.parametrize("model", [c[1] for c in UNKNOWN], ids=[c[0] for c in UNKNOWN])
def test_values_that_do_not_exist(tmp_path: Path, model: str) -> None:
    with pytest.raises(PolicyError) as caught:
        patients(tmp_path, K, model)
    [found] = caught.value.diagnostics
    assert (found.code, found.hint) == ("unknown-value", 'did you mean "flu"?')
    line = (tmp_path / "policy.yaml").read_text().splitlines()[found.line - 1]
    assert line.strip() == f"- {model}"
    assert line[found.column - 1 :].startswith(("flue", "0.5", "1")), "the entry that is wrong"


def test_values_that_do_not_exist_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "alphas.csv").write_text("value;alpha\nflu;0.5\nflue;0.5\n")
    with pytest.raises(PolicyError) as caught:
        patients(tmp_path, "{model: alpha_k, attribute: illness, k: 2, alpha: alphas.csv}")
    [found] = caught.value.diagnostics
    assert (found.code, found.hint) == ("unknown-value", 'did you mean "flu"?')


SENSITIVE = """
version: 1
name: p
attributes:
  age: {{role: quasi_identifier, type: integer, hierarchy: {{kind: interval, range: [0, 99], snap: none}}}}
  s: {{role: sensitive, {sensitive}}}
privacy: [{{model: alpha_k, attribute: s, k: 2, alpha: {{"{name}": 0.5}}}}]
"""

NAMED = [
    # remark, settings of the sensitive attribute, a name in the policy, the value in records
    ("text", "type: category", "flu", "flu"),
    ("a number as a category", "type: category", "1", 1),
    ("a truth", "type: category", "true", True),
    ("an integer", "type: integer", "7", 7),
    ("a decimal", "type: number", "0.5", 0.5),
    ("a whole decimal", "type: number", "2", 2.0),
    ("an integer of a range", "type: integer, hierarchy: {kind: interval, range: [0, 9]}", "7", 7),
    ("a decimal of a range", "type: number, hierarchy: {kind: interval, range: [0, 9], step: 0.5}", "0.5", 0.7),
    ("a day", "type: timestamp, hierarchy: {kind: calendar, levels: [day]}", "2026-03-08", "2026-03-08T10:00:00"),
    ("a code", "type: category, hierarchy: {kind: prefix, length: 3}", "012", "012"),
]


@pytest.mark.parametrize(("sensitive", "name", "value"), [c[1:] for c in NAMED], ids=[c[0] for c in NAMED])
def test_names_in_a_policy_find_values_of_every_type(tmp_path: Path, sensitive: str, name: str, value: object) -> None:
    """An alpha that finds no value would protect nobody."""
    (tmp_path / "policy.yaml").write_text(SENSITIVE.format(sensitive=sensitive, name=name))
    schema = Schema.compile(load(tmp_path / "policy.yaml", {}))
    [model] = schema.requirements.models
    assert isinstance(model, AlphaK)
    assert model.alpha_of(code(schema, value)) == 0.5


MISNAMED = [
    # remark, settings of the sensitive attribute, name
    ("no number", "type: integer, hierarchy: {kind: interval, range: [0, 9]}", "seven"),
    ("a fraction", "type: integer, hierarchy: {kind: interval, range: [0, 9]}", "7.5"),
    ("beyond the range", "type: integer, hierarchy: {kind: interval, range: [0, 9]}", "10"),
    ("no decimal", "type: number, hierarchy: {kind: interval, range: [0, 9], step: 1}", "x"),
    ("no day", "type: timestamp, hierarchy: {kind: calendar, levels: [day]}", "soon"),
    ("no leaf, though unknown values have one", "unknown: leaf, hierarchy: {kind: flat, values: [flu]}", "flue"),
]


@pytest.mark.parametrize(("sensitive", "name"), [c[1:] for c in MISNAMED], ids=[c[0] for c in MISNAMED])
def test_names_in_a_policy_that_no_value_can_have(tmp_path: Path, sensitive: str, name: str) -> None:
    (tmp_path / "policy.yaml").write_text(SENSITIVE.format(sensitive=sensitive, name=name))
    with pytest.raises(PolicyError) as caught:
        Schema.compile(load(tmp_path / "policy.yaml", {}))
    assert [(d.code, d.line) for d in caught.value.diagnostics] == [("unknown-value", 7)]


FINGERPRINTS = [
    # remark, the other policy's models
    ("another k", "{model: k_anonymity, k: 3}"),
    ("another model", "{model: l_diversity, attribute: illness, l: 2}"),
]


@pytest.mark.parametrize("model", [c[1] for c in FINGERPRINTS], ids=[c[0] for c in FINGERPRINTS])
def test_fingerprints_tell_policies_apart(tmp_path: Path, model: str) -> None:
    assert patients(tmp_path, K).fingerprint == patients(tmp_path, K).fingerprint
    assert patients(tmp_path, K, model).fingerprint != patients(tmp_path, K).fingerprint


def test_fingerprints_follow_the_files_a_policy_names(tmp_path: Path) -> None:
    model = "{model: alpha_k, attribute: illness, k: 2, alpha: alphas.csv}"
    found = set()
    for alpha in ("0.5", "0.6"):
        (tmp_path / "alphas.csv").write_text(f"value;alpha\nflu;{alpha}\n")
        found.add(patients(tmp_path, model).fingerprint)
    assert len(found) == 2


PUBLISH = """
import json, sys
import numpy as np
if sys.argv[1] == "plain":
    sys.modules["numba"] = None
from pathlib import Path
from stream_anon.core import kernels
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Reason, release
from stream_anon.core.schema import Schema
from stream_anon.policy import load
assert sys.argv[1] != "plain" or not kernels.COMPILED
schema = Schema.compile(load(Path(sys.argv[2]), {}))
rows = [{"patient": i, "age": 20 + i * i, "home": {"zip": f"{2139 + i:05d}"}, "illness": "flu"} for i in range(5)]
ref = np.stack([np.zeros(5, np.int64), np.arange(5)], axis=1)
batch = Encoder(schema).encode([json.dumps(row).encode() for row in rows], ref, np.zeros(5)).batch
for record in release(batch, schema, Reason.BATCH).encoded():
    print(record.decode())
"""


def test_what_is_published_does_not_depend_on_the_compiler(tmp_path: Path) -> None:
    patients(tmp_path, K)
    said = []
    for mode in ("compiled", "plain"):
        command = [sys.executable, "-c", PUBLISH, mode, str(tmp_path / "policy.yaml")]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 5
