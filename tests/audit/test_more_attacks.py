"""Attacks that no group alone is open to, on tables where what they achieve is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_anon.auditor.attacks.attacks import attack_file
from stream_anon.auditor.attacks.definetti import guesses
from stream_anon.auditor.attacks.measured import Measured
from stream_anon.auditor.policy import read_rules
from stream_anon.auditor.raw.original import read_original
from stream_anon.cli import run_command as run
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.insight.isolation import isolate
from stream_anon.policy import load

POLICY = """
version: 1
name: seen
subject: who
secret: a secret only for the tests, of some length
attributes:
  who: {{role: identifier}}
  age: {{role: quasi_identifier, type: integer, hierarchy: {{kind: interval, range: [0, 99], snap: none}}}}
  ill: {{role: sensitive}}
  visit: {{role: insensitive}}
privacy: [{{model: k_anonymity, k: {k}}}]
stream: {{max_delay: {{records: {bound}}}}}
algorithm: {{name: {algorithm}}}
"""
Row = dict[str, Any]


def write(folder: Path, rows: list[Row], k: int = 2, bound: int = 50, algorithm: str = "fads") -> tuple[Path, Path]:
    policy, raw = folder / "policy.yaml", folder / "raw.jsonl"
    policy.write_text(POLICY.format(k=k, bound=bound, algorithm=algorithm))
    raw.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return policy, raw


def publish(folder: Path, name: str, rows: list[Row], groups: list[list[int]]) -> Path:
    """What would be published of these rows in these groups."""
    lines = []
    for number, members in enumerate(groups):
        ages = [rows[i]["age"] for i in members]
        told = {"policy": "seen@000000", "group": f"{number:016x}", "size": len(members)}
        told |= {"subjects": len({rows[i]["who"] for i in members}), "loss": (max(ages) - min(ages)) / 99}
        for place, i in enumerate(members):
            published = {"age": [min(ages), max(ages)], "ill": rows[i]["ill"], "visit": rows[i]["visit"]}
            lines.append(published | {"_anon": told | {"row": place}})
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def measured(folder: Path, rows: list[Row], groups: list[list[int]], second: list[list[int]] | None = None) -> Any:
    policy, raw = write(folder, rows)
    rules = read_rules(policy)
    other = (publish(folder, "two.jsonl", rows, second), rules) if second else None
    out = publish(folder, "one.jsonl", rows, groups)
    found = attack_file(out, rules, read_original(raw, rules), second=other).measured
    return {(each.name, each.attribute): each for each in found}


def row(who: str, age: int, ill: str, visit: int) -> Row:
    return {"who": who, "age": age, "ill": ill, "visit": visit}


FOUR = [row("ann", 20, "flu", 0), row("bo", 25, "gout", 1), row("cy", 30, "flu", 2), row("di", 35, "gout", 3)]


def test_two_outputs_of_the_same_groups_tell_no_more(tmp_path: Path) -> None:
    groups = [[0, 1], [2, 3]]
    found = measured(tmp_path, FOUR, groups, groups)["composition", ""]
    assert (found.tried, found.share) == (4, 0.0)


def test_two_outputs_of_other_groups_single_out(tmp_path: Path) -> None:
    found = measured(tmp_path, FOUR, [[0, 1], [2, 3]], [[0, 2], [1, 3]])["composition", ""]
    assert (found.tried, found.share) == (4, 1.0)
    assert measured(tmp_path, FOUR, [[0, 1], [2, 3]], [[0, 1, 2, 3]])["composition", ""].share == 0.0


def test_known_groups_of_one_person_are_intersected(tmp_path: Path) -> None:
    """Ann is always there, in boxes that have only her age in common; of Bo's groups both hold Cy's age, too."""
    rows = [row("ann", 30, "flu", 0), row("bo", 20, "flu", 1), row("ann", 30, "flu", 2), row("cy", 40, "flu", 3)]
    rows += [row("bo", 20, "flu", 4), row("di", 19, "flu", 5)]
    found = measured(tmp_path, rows, [[0, 1], [2, 3], [4, 5]])["intersection", "2 visits"]
    assert found.tried == 2  # Ann and Bo
    assert found.share == 1.0  # [20, 30] and [30, 40]; [20, 30] and [19, 20]
    wider = measured(tmp_path, rows, [[0, 1, 3], [2, 4, 5]])["intersection", "2 visits"]
    assert wider.share == 0.0  # [20, 40] and [19, 30]: both fit both
    assert ("intersection", "5 visits") not in measured(tmp_path, rows, [[0, 1], [2, 3], [4, 5]])


def groups_of(rng: np.random.Generator, values: np.ndarray, size: int) -> np.ndarray:
    return np.argsort(rng.permutation(len(values)), kind="stable") // size


@pytest.mark.parametrize(("told", "gain"), [(0.95, 0.3), (0.0, 0.0)])
def test_values_are_learned_only_where_quasi_identifiers_tell_them(told: float, gain: float) -> None:
    """In groups by chance nobody's value is told; but if an attribute goes with it, all groups together teach that."""
    rng, n = np.random.default_rng(1), 4_000
    value = rng.integers(0, 4, n)
    feature = np.where(rng.random(n) < told, value, rng.integers(0, 4, n))
    group = groups_of(rng, value, 4)
    right = float((guesses([feature], group, value, 4) == value).mean())
    counts = np.zeros((group.max() + 1, 4))
    np.add.at(counts, (group, value), 1)
    guess = float((counts.max(axis=1) / 4).mean())
    if gain:
        assert right > guess + gain
    else:
        assert abs(right - guess) < 0.1


def encoded(policy: Path, rows: list[Row]) -> tuple[Schema, Any]:
    schema = Schema.compile(load(policy))
    ref = np.stack([np.zeros(len(rows), np.int64), np.arange(len(rows))], axis=1)
    return schema, Encoder(schema).encode(rows, ref, np.zeros(len(rows))).batch


def test_forged_people_isolate_whom_they_surround(tmp_path: Path) -> None:
    """Equal records leave as soon as they are k: the forged ones see to that, before anybody else can join."""
    rows = [row(f"p{i}", i, "flu", i) for i in range(100)]
    schema, batch = encoded(write(tmp_path, rows, k=4, bound=1000, algorithm="cail, threshold: 0.0")[0], rows)
    found = isolate(schema, batch, victims=20, rate=100)
    assert (found.tried, found.share, found.forged) == (20, 1.0, 60)
    assert isolate(schema, batch, victims=20, rate=100) == found


def test_in_a_crowd_of_equals_nobody_is_isolated_for_sure(tmp_path: Path) -> None:
    rows = [row(f"p{i}", 50, "flu", i) for i in range(400)]
    schema, batch = encoded(write(tmp_path, rows, k=4, bound=30)[0], rows)
    assert isolate(schema, batch, victims=20, rate=100).share < 0.5
    assert isolate(schema, batch, victims=0, rate=100).tried == 0


def test_the_command_tells_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    rows = [row(f"p{i % 40}", int(i % 40 * 2), str(rng.choice(["flu", "gout"])), i) for i in range(400)]
    policy, raw = write(tmp_path, rows, k=3)
    for name, bound in (("one", 50), ("two", 20)):
        other = tmp_path / f"{name}.yaml"
        other.write_text(POLICY.format(k=3, bound=bound, algorithm="cail"))
        assert run(["replay", str(raw), "-p", str(other), "-o", str(tmp_path / f"{name}.jsonl"), "--rate", "10"]) == 0
    attack = ["attack", str(tmp_path / "one.jsonl"), "--raw", str(raw), "-p", str(policy)]
    more = ["--second", str(tmp_path / "two.jsonl"), "--second-policy", str(tmp_path / "two.yaml"), "--isolation", "20"]
    capsys.readouterr()
    assert run([*attack, *more, "--json"]) == 0
    found = [Measured(**each) for each in json.loads(capsys.readouterr().out)["measured"]]
    assert [each.name for each in found] == [*["intersection"] * 3, "deFinetti", "composition", "isolation"]
    assert all(0 <= each.share <= 1 and each.tried > 0 for each in found)
    for made_by in ([], ["--algorithm", "mondrian"]):
        assert run([*attack, "--minimality", "1", *made_by, "--json"]) == 0
        found = [Measured(**each) for each in json.loads(capsys.readouterr().out)["measured"]]
        assert "ill, one target known" in [each.attribute for each in found if each.name == "minimality"]
        assert all(each.baseline and "1/k is 0.333" in each.meaning for each in found if each.name == "minimality")
    assert run([*attack, "--algorithm", "mondrian"]) == 2
    assert run([*attack, *more]) == 0
    told = " ".join(capsys.readouterr().err.split())
    for name in ("intersection (10 visits)", "deFinetti (ill)", "composition", "isolation"):
        assert name in told
    assert run([*attack, "--second-policy", str(policy)]) == 2
