"""The attacks on the tables of the papers, where what they achieve is known."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from publishing import people, publish

from stream_anon.auditor.attacks.attacks import AttackResult, attack_file, attacks, breach
from stream_anon.auditor.policy import read_rules
from stream_anon.auditor.raw.original import Original, read_original
from stream_anon.auditor.raw.views import View, before
from stream_anon.cli import run_command as run
from stream_anon.core.schema import Schema
from stream_anon.formats.tables import read_parts
from stream_anon.formats.writers import new_file, writer_for
from stream_anon.local.anonymize import Anonymization
from stream_anon.policy import load

ILLNESSES = {
    "Any illness": {
        "Respiratory system problem": {
            "Respiratory infection": ["Flu", "Pneumonia", "Bronchitis"],
            "Vascular lung disease": ["Pulmonary edema", "Pulmonary embolism"],
        },
        "Digestive system problem": {
            "Stomach disease": ["Gastric ulcer", "Dyspepsia", "Gastritis"],
            "Colon disease": ["Colitis", "Colon cancer"],
        },
    }
}
TEN = [
    # age, sex, zip, disease, guarding node
    (5, "M", 12000, "Gastric ulcer", "Stomach disease"),
    (9, "M", 14000, "Dyspepsia", "Dyspepsia"),
    (6, "M", 18000, "Pneumonia", "Respiratory infection"),
    (8, "M", 19000, "Bronchitis", "Bronchitis"),
    (12, "M", 22000, "Pneumonia", "Pneumonia"),
    (19, "M", 24000, "Pneumonia", "Pneumonia"),
    (21, "F", 58000, "Flu", ""),
    (26, "F", 36000, "Gastritis", "Gastritis"),
    (28, "F", 37000, "Pneumonia", "Respiratory infection"),
    (56, "F", 33000, "Flu", "Flu"),
]
ABSENT = (7, "M", 17000)
"""On the list of voters, but not in the table."""

ATTRIBUTES = {
    "who": {"role": "identifier"},
    "age": {
        "role": "quasi_identifier",
        "type": "integer",
        "hierarchy": {"kind": "interval", "range": [5, 56], "snap": "none"},
    },
    "sex": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["M", "F"]}},
    "zip": {
        "role": "quasi_identifier",
        "type": "integer",
        "hierarchy": {"kind": "interval", "range": [12000, 58000], "snap": "none"},
    },
    "illness": {"role": "sensitive", "hierarchy": {"kind": "tree", "tree": ILLNESSES}, "guarding_node": "guard"},
}
PRIVACY = [{"model": "k_anonymity", "k": 2}, {"model": "guarding_node", "attribute": "illness", "p": 0.5}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The ten people's table, the list of eleven voters, and a policy."""
    with (tmp_path / "raw.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "age", "sex", "zip", "illness", "guard"])
        writer.writerows([f"person {i}", *row] for i, row in enumerate(TEN, start=1))
    with (tmp_path / "voters.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "age", "sex", "zip"])
        writer.writerows([f"voter {i}", *row[:3]] for i, row in enumerate([*TEN, ABSENT], start=1))
    policy = {"version": 1, "name": "ten", "secret": "0123456789abcdef0123456789abcdef", "subject": "who"}
    policy |= {"attributes": ATTRIBUTES, "privacy": PRIVACY}
    (tmp_path / "policy.yaml").write_text(json.dumps(policy))
    return tmp_path


def published(folder: Path, algorithm: str, **options: Any) -> Path:
    out = folder / "out.jsonl"
    batch = Anonymization(Schema.compile(load(folder / "policy.yaml", {})), algorithm, options)
    batch.read(read_parts(folder / "raw.csv"), pytest.fail, lambda share: None)
    batch.divide(lambda share: None)
    with new_file(out) as file:
        batch.write(writer_for(out, file), lambda share: None)
    return out


def shares(result: AttackResult) -> dict[str, tuple[float, float]]:
    return {found.name: (found.before, found.after) for found in result.attacks}


@pytest.mark.parametrize("algorithm", ["mondrian", "sweep", "guarding"])
def test_linking_the_ten_with_the_voters(folder: Path, algorithm: str) -> None:
    rules = read_rules(folder / "policy.yaml")
    out = published(folder, algorithm)
    original = read_original(folder / "raw.csv", rules)
    voters = read_original(folder / "voters.csv", replace(rules, subject="name"))
    result = attack_file(out, rules, original, voters)
    assert (len(original), len(voters)) == (10, 11)
    assert shares(result)["linking"] == (1.0, 0.0)
    assert result.highest_chance[0] == 1.0
    assert result.highest_chance[1] <= 1 / 2
    assert shares(result)["guarding nodes"][1] == 0.0
    assert shares(result)["guarding nodes"][0] == 0.9  # all but the one who asks for nothing


def ten_in(folder: Path, classes: list[int]) -> tuple[View, Original]:
    """The ten people's records, alike as given."""
    rules = read_rules(folder / "policy.yaml")
    original = read_original(folder / "raw.csv", rules)
    return replace(before(original, original, rules), alike=np.array(classes)), original


BREACHES = [
    # remark, class of each record, chance of each record
    ("four groups", [0, 0, 1, 1, 2, 2, 3, 3, 3, 3], [1, 0.5, 1, 0.5, 1, 1, 0, 0.25, 0.75, 0.5]),
    ("all together", [0] * 10, [0.3, 0.1, 0.7, 0.1, 0.4, 0.4, 0, 0.1, 0.7, 0.2]),
]


@pytest.mark.parametrize(("classes", "chances"), [c[1:] for c in BREACHES], ids=[c[0] for c in BREACHES])
def test_breach(folder: Path, classes: list[int], chances: list[float]) -> None:
    view, _ = ten_in(folder, classes)
    assert breach(view, "illness").tolist() == pytest.approx(chances)


CLASSES = [
    # remark, class of each record, attack, share of records
    ("each alone", list(range(10)), "homogeneity", 1.0),
    ("each alone", list(range(10)), "skew", 1.0),
    ("pairs: 5 and 6 share a value", [0, 0, 1, 1, 2, 2, 3, 3, 3, 3], "homogeneity", 0.2),
    ("pairs: only flu reaches half", [0, 0, 1, 1, 2, 2, 3, 3, 3, 3], "skew", 0.2),
    ("1 and 2 are of the stomach, 3 to 6 of the lung", [0, 0, 1, 1, 2, 2, 3, 3, 3, 3], "similarity", 0.6),
    ("pairs: one excluded value is enough", [0, 0, 1, 1, 2, 2, 3, 3, 3, 3], "background knowledge 1", 0.6),
    ("three values fall to two excluded ones", [0, 0, 1, 1, 2, 2, 3, 3, 3, 3], "background knowledge 2", 1.0),
    ("all together: six values", [0] * 10, "background knowledge 2", 0.0),
    ("all together: no node but the root", [0] * 10, "similarity", 0.0),
]


@pytest.mark.parametrize(("classes", "attack", "share"), [c[1:] for c in CLASSES], ids=[c[0] for c in CLASSES])
def test_attack(folder: Path, classes: list[int], attack: str, share: float) -> None:
    view, _ = ten_in(folder, classes)
    [succeeds] = [succeeds for name, _, _, succeeds in attacks(read_rules(folder / "policy.yaml")) if name == attack]
    assert succeeds(view).mean() == pytest.approx(share)


def test_intersection(folder: Path) -> None:
    """Persons 1 and 5 are one and the same, in two groups that have nobody else in common."""
    view, _ = ten_in(folder, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    subject = view.subject.copy()
    subject[4] = subject[0]
    [succeeds] = [s for name, _, _, s in attacks(read_rules(folder / "policy.yaml")) if name == "intersection"]
    assert not succeeds(view).any()
    assert np.flatnonzero(succeeds(replace(view, subject=subject))).tolist() == [0, 4]
    same = replace(view, subject=subject, alike=np.zeros(10, dtype=np.int64))
    assert not succeeds(same).any(), "in one group nine others stand beside them"


def test_what_a_model_forbids_does_not_succeed(tmp_path: Path) -> None:
    """Published under l, c and p, the attacks against which they stand fail on every record."""
    against = {
        "distinct": ["homogeneity", "background knowledge 1"],  # l = 3
        "lc": ["skew"],
        "guards": ["guarding nodes"],
    }
    for model, names in against.items():
        folder = tmp_path / model
        folder.mkdir()
        made = publish(folder, "plain", model, "mondrian", people(90, seed=2))
        rules = made.rules
        found = shares(attack_file(made.out, rules, read_original(made.raw, rules)))
        assert found["linking"] == (pytest.approx(1.0, abs=0.15), 0.0)
        for name in names:
            assert found[name][0] > 0.1
            assert found[name][1] == 0.0


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = published(folder, "mondrian")
    command = ["attack", str(out), "--raw", str(folder / "raw.csv"), "-p", str(folder / "policy.yaml")]
    assert run([*command, "--list", str(folder / "voters.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    linking = found["attacks"][0]
    assert (linking["name"], linking["before"], linking["after"]) == ("linking", 1.0, 0.0)
    assert run(command) == 0
    told = capsys.readouterr().err
    assert "linking" in told
    assert "100.0%" in told
    assert told.splitlines()[-1].startswith("next: ")
    assert run(["attack", str(out), "--raw", str(folder / "none.csv"), "-p", str(folder / "policy.yaml")]) == 1
