"""A privacy model of another distribution works wherever one of this package does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from distributions import PIPE, commands, install, run

from stream_anon.auditor.models import known_models
from stream_anon.core.privacy import MODELS, ModelSettings
from stream_anon.core.privacy.k_anonymity import KAnonymitySettings
from stream_anon.errors import PluginError
from stream_anon.grammar.registry import Registry

MODEL = '''
from typing import Literal

import numpy as np

from stream_anon.core.privacy import ColumnModelSettings, SensitiveModel
from stream_anon.errors import Problem, warning
from stream_anon.grammar.fields import Share


class RareValues(SensitiveModel):
    """No value is held by more than a share of the people."""

    name = "rare_values"

    def __init__(self, column, most):
        super().__init__(column)
        self.most = most

    def judge(self, values, counts, people):
        return float(np.maximum(counts - self.most * max(people, 1) - 1e-9, 0).sum())


class RareValuesSettings(ColumnModelSettings):
    """No value has a share above `most` in a group."""

    model: Literal["rare_values"]
    most: Share
    forms = (RareValues,)

    def rules(self, attribute):
        if self.most == 1:
            yield Problem(("most",), "no-limit", "every group satisfies a share of 1", "a smaller share")

    def warnings(self, model, column):
        if self.most < 0.2:
            yield warning(("most",), "very-rare", f"groups of {column.name} will be large", "a larger share")

    def build(self, place):
        return RareValues(place.index, self.most)
'''
POLICY = """
version: 1
name: wards
attributes:
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 100], snap: [5, 10]}}
  ill: {role: sensitive}
privacy:
  - {model: k_anonymity, k: 3}
  - {model: rare_values, attribute: ill, most: MOST}
"""
CHECK = '''
from dataclasses import dataclass

from stream_anon.auditor.models import ValueModel


@dataclass(frozen=True)
class RareValues(ValueModel):
    """No value is held by more than a share of the people."""

    code = "rare_values"
    meaning = "a value has a larger share than allowed"
    attribute: str
    most: float

    @classmethod
    def read(cls, spec, columns, folder):
        return cls(spec["attribute"], spec["most"]), ""

    def promise(self, who):
        return f"{self.attribute}: no value with a share above {self.most:g}"

    def failing(self, counts):
        return counts.share > self.most + 1e-9
'''


def policies(folder: Path) -> None:
    for name, most in (("policy", "0.5"), ("useless", "1.0"), ("strict", "0.1")):
        (folder / f"{name}.yaml").write_text(POLICY.replace("MOST", most), encoding="utf-8")


ENTRY = "[stream_anon.privacy_models]\nrare_values = rare:RareValuesSettings\n"
GROUP = [
    {"age": "*", "ill": ill, "_anon": {"policy": "wards@000000", "group": "00" * 8, "row": i, "size": 3, "loss": 1.0}}
    for i, ill in enumerate(["flu", "flu", "cough"])
]
AUDIT = ["audit", "group.jsonl", "-p", "policy.yaml", "--json"]


def prepare(folder: Path) -> list[str]:
    policies(folder)
    (folder / "group.jsonl").write_text("".join(json.dumps(record) + "\n" for record in GROUP), encoding="utf-8")
    rows = [{"age": i % 50, "ill": "flu" if i % 5 < 2 else "abcdefgh"[i % 8]} for i in range(300)]
    lines = [json.dumps(row) for row in rows]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


def test_a_model_of_another_distribution(tmp_path: Path) -> None:
    install(tmp_path, "rare", MODEL, ENTRY)
    lines = prepare(tmp_path)
    schema, strict, useless, anonymize, audit = commands(
        tmp_path,
        ["schema"],
        ["check", "strict.yaml"],
        ["check", "useless.yaml"],
        ["anonymize", "-p", "policy.yaml", "in.jsonl", "-o", "out.jsonl"],
        AUDIT,
    )
    assert [schema[0], strict[0], useless[0], anonymize[0]] == [0, 0, 3, 0]
    assert "rare_values" in schema[1]
    assert "very-rare" in strict[1] + strict[2]
    assert "useless.yaml:9" in useless[2]  # a rule of its own, with its place
    assert "no-limit" in useless[2]
    piped = run(tmp_path, PIPE, text="\n".join(lines) + "\n")
    assert piped.returncode == 0, piped.stderr
    for published in ((tmp_path / "out.jsonl").read_text(encoding="utf-8"), piped.stdout):
        groups: dict[str, list[str]] = {}
        for line in published.splitlines():
            record = json.loads(line)
            groups.setdefault(record["_anon"]["group"], []).append(record["ill"])
        assert groups
        assert max(max(ills.count(ill) for ill in ills) / len(ills) for ills in groups.values()) <= 0.5
    told = json.loads(audit[1])  # the auditor says what it cannot judge
    assert any(note.startswith("not judged: rare_values: ") for note in told["notes"]), told["notes"]
    assert not any("rare_values" in check["codes"] for check in told["checks"])
    assert "rare_values" not in [finding["code"] for finding in told["findings"]]


def test_a_check_of_another_distribution_judges(tmp_path: Path) -> None:
    install(tmp_path, "checking", CHECK, "[stream_anon.auditor_models]\nrare_values = checking:RareValues\n")
    prepare(tmp_path)
    refused, (code, out, _) = commands(tmp_path, ["check", "policy.yaml"], AUDIT)
    assert refused[0] == 3  # the model itself is not installed
    assert "unknown-kind" in refused[2]
    told = json.loads(out)
    found = {finding["code"]: finding["meaning"] for finding in told["findings"]}
    assert (code, found["rare_values"]) == (4, "a value has a larger share than allowed")
    assert not told["notes"]


BROKEN = [
    # module, its source, what the entry point names, the reason
    ("absent", "", "absent:Settings", "cannot be loaded"),
    ("other", "Settings = 3", "other:Settings", "not a class of settings"),
    ("taken", MODEL.replace('"rare_values"', '"k_anonymity"'), "taken:RareValuesSettings", "is there already"),
]


@pytest.mark.parametrize(("module", "source", "entry", "reason"), BROKEN, ids=[case[0] for case in BROKEN])
def test_a_broken_distribution_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, source: str, entry: str, reason: str
) -> None:
    install(tmp_path, module, source, f"[stream_anon.privacy_models]\nx = {entry}\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry(ModelSettings, key="model", group="stream_anon.privacy_models")
    registry.add(KAnonymitySettings)
    for _ in range(2):  # whoever asks again gets the same answer
        with pytest.raises(PluginError, match=reason) as raised:
            list(registry)
        assert str(raised.value).startswith(f"{module}, entry point stream_anon.privacy_models: x")


def test_the_auditor_knows_every_model_and_no_other() -> None:
    assert set(known_models()) == set(MODELS.words)
    assert len(known_models()) >= 6
