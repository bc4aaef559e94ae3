"""A privacy model of another distribution works wherever one of this package does."""

from __future__ import annotations

import json
from pathlib import Path

from distributions import PIPE, commands, install, run

from stream_anon.auditor.models import MODELS as JUDGED
from stream_anon.core.privacy import MODELS

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


def test_a_model_of_another_distribution(tmp_path: Path) -> None:
    install(tmp_path, "rare", MODEL, "[stream_anon.privacy_models]\nrare_values = rare:RareValuesSettings\n")
    policies(tmp_path)
    rows = [{"age": i % 50, "ill": "flu" if i % 5 < 2 else "abcdefgh"[i % 8]} for i in range(300)]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    told = commands(
        tmp_path,
        ["schema"],
        ["check", "strict.yaml"],
        ["anonymize", "-p", "policy.yaml", "in.jsonl", "-o", "out.jsonl"],
    )
    assert {name: code for name, (code, _, _) in told.items()} == dict.fromkeys(told, 0), told
    assert "rare_values" in told["schema"][1]
    assert "very-rare" in told["check"][1] + told["check"][2]
    piped = run(tmp_path, PIPE, text="\n".join(lines) + "\n")
    assert piped.returncode == 0, piped.stderr
    for published in ((tmp_path / "out.jsonl").read_text(encoding="utf-8"), piped.stdout):
        groups: dict[str, list[str]] = {}
        for line in published.splitlines():
            record = json.loads(line)
            groups.setdefault(record["_anon"]["group"], []).append(record["ill"])
        assert groups
        assert max(max(ills.count(ill) for ill in ills) / len(ills) for ills in groups.values()) <= 0.5


def test_its_rules_are_told_with_their_place(tmp_path: Path) -> None:
    install(tmp_path, "rare", MODEL, "[stream_anon.privacy_models]\nrare_values = rare:RareValuesSettings\n")
    policies(tmp_path)
    code, out, err = commands(tmp_path, ["check", "useless.yaml"])["check"]
    assert code == 3
    assert "useless.yaml:9" in out + err
    assert "no-limit" in out + err


def test_without_it_the_policy_is_refused(tmp_path: Path) -> None:
    policies(tmp_path)
    code, out, err = commands(tmp_path, ["check", "policy.yaml"])["check"]
    assert code == 3
    assert "unknown-kind" in out + err


def test_a_broken_distribution_is_named(tmp_path: Path) -> None:
    for module, source, entry, reason in (
        ("absent", "", "absent:Settings", "cannot be loaded"),
        ("other", "Settings = 3", "other:Settings", "not a class of settings"),
        ("taken", MODEL.replace('"rare_values"', '"k_anonymity"'), "taken:RareValuesSettings", "is there already"),
    ):
        folder = tmp_path / module
        folder.mkdir()
        policies(folder)
        install(folder, module, source, f"[stream_anon.privacy_models]\nx = {entry}\n")
        code, out, err = commands(folder, ["check", "policy.yaml"])["check"]
        assert code == 3
        assert f"{module}, entry point stream_anon.privacy_models: x" in out + err
        assert reason in out + err


GROUP = [
    {"age": "*", "ill": ill, "_anon": {"policy": "wards@000000", "group": "00" * 8, "row": i, "size": 3, "loss": 1.0}}
    for i, ill in enumerate(["flu", "flu", "cough"])
]
AUDIT = ["audit", "out.jsonl", "-p", "policy.yaml", "--json"]


def test_the_auditor_says_what_it_cannot_judge(tmp_path: Path) -> None:
    policies(tmp_path)
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(record) + "\n" for record in GROUP), encoding="utf-8")
    _, out, _ = commands(tmp_path, AUDIT)["audit"]
    told = json.loads(out)
    assert any(note.startswith("not judged: rare_values: ") for note in told["notes"]), told["notes"]
    assert not any("rare_values" in check["codes"] for check in told["checks"])
    assert "rare_values" not in [finding["code"] for finding in told["findings"]]


def test_a_check_of_another_distribution_judges(tmp_path: Path) -> None:
    install(tmp_path, "checking", CHECK, "[stream_anon.auditor_models]\nrare_values = checking:RareValues\n")
    policies(tmp_path)
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(record) + "\n" for record in GROUP), encoding="utf-8")
    code, out, _ = commands(tmp_path, AUDIT)["audit"]
    told = json.loads(out)
    found = {finding["code"]: finding["meaning"] for finding in told["findings"]}
    assert (code, found["rare_values"]) == (4, "a value has a larger share than allowed")
    assert not told["notes"]


def test_the_auditor_knows_every_model_and_no_other() -> None:
    assert set(JUDGED) == set(MODELS.words)
    assert len(JUDGED) >= 6
