"""Published fields under audit: what the anonymizer makes passes, what is planted into it is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stream_anon.auditor.auditor import audit_file
from stream_anon.auditor.fields import known_fields
from stream_anon.auditor.policy import read_rules
from stream_anon.auditor.raw.original import read_original
from stream_anon.auditor.result import AuditResult
from stream_anon.cli import run_command as run
from stream_anon.core.fields import PUBLISH_KINDS

SECRET = "kX2-hj41_qPz9wLtVb7nRc3mYd8sFg5a"
Record = dict[str, Any]

ATTRIBUTES: dict[str, Any] = {
    "who": {"role": "identifier", "publish": {"kind": "pseudonym", "scope": {"rotate": "1d", "by": "at"}}},
    "name": {"role": "identifier"},
    "age": {
        "role": "quasi_identifier",
        "type": "integer",
        "hierarchy": {"kind": "interval", "range": [0, 99], "snap": [5, 10]},
    },
    "pay": {"role": "sensitive", "type": "number", "publish": {"kind": "round", "step": 0.5, "top": 40}},
    "card": {"role": "identifier", "publish": {"kind": "mask", "last": 2}},
    "born": {"role": "identifier", "publish": {"kind": "shift", "days": 20}},
    "shard": {"role": "identifier", "publish": {"kind": "hash_prefix", "length": 1, "people": 500}},
    "note": {"role": "insensitive", "publish": "redact"},
    "ward": {"role": "insensitive"},
}


def raw_records(count: int = 120) -> list[Record]:
    return [
        {
            "who": f"P{i % 60}",
            "name": f"Name{i % 60}",
            "age": (i * 7 + i // 60 * 31) % 60 + 20,
            "pay": (i * 13 % 97) / 2.3,
            "card": 4111111111110000 + i,
            "born": f"19{60 + i % 40}-0{1 + i % 9}-1{i % 10}",
            "shard": f"P{i % 60}",
            "note": f"Name{i % 60} wrote from p{i}@x.org, 555 010 01{i:02d}",
            "ward": "ab"[i % 2],
            "at": f"2026-03-0{1 + i // 60}T12:00:00Z",
        }
        for i in range(count)
    ]


class Files:
    """The files of one run of `anonymize`."""

    def __init__(self, folder: Path, suffix: str = "jsonl", **changed: Any) -> None:
        self.policy, self.raw, self.out = folder / "policy.yaml", folder / "raw.jsonl", folder / f"out.{suffix}"
        data = {"version": 1, "name": "t", "subject": "who", "secret": SECRET, "attributes": ATTRIBUTES | changed}
        self.policy.write_text(json.dumps(data | {"privacy": [{"model": "k_anonymity", "k": 4}]}))
        self.raw.write_text("".join(json.dumps(record) + "\n" for record in raw_records()))
        assert run(["anonymize", str(self.raw), "-p", str(self.policy), "-o", str(self.out)]) == 0

    def audit(self) -> AuditResult:
        rules = read_rules(self.policy)
        return audit_file(self.out, rules, read_original(self.raw, rules))

    def records(self) -> list[Record]:
        return [json.loads(line) for line in self.out.read_text().splitlines()]

    def write(self, records: list[Record]) -> None:
        self.out.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("fields"))


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_what_is_published_passes(tmp_path: Path, suffix: str) -> None:
    result = Files(tmp_path, suffix).audit()
    assert result.findings == ()
    assert result.raw is not None
    assert result.raw.matched == result.records == 120


def test_nothing_of_the_originals_is_in_the_output(files: Files) -> None:
    text = files.out.read_text()
    for record in raw_records():
        assert not any(str(record[name]) in text for name in ("name", "card", "note"))
        assert f'"{record["who"]}"' not in text
        assert f"p{record['who'][1:]}@" not in text


def test_the_linkage_of_tokens_is_measured(files: Files, tmp_path: Path) -> None:
    daily = files.audit().linkage["who"]
    assert (daily.tokens, daily.largest, daily.mean) == (120, 1, 1.0)
    stable = Files(tmp_path, who={"role": "identifier", "publish": {"kind": "pseudonym", "stable": True}})
    linked = stable.audit()
    groups: dict[str, set[str]] = {}
    for record in stable.records():
        groups.setdefault(record["who"], set()).add(record["_anon"]["group"])
    counts = [len(found) for found in groups.values()]
    assert max(counts) == 2
    assert (linked.linkage["who"].tokens, linked.linkage["who"].largest) == (60, 2)
    assert linked.linkage["who"].mean == pytest.approx(sum(counts) / 60, abs=1e-4)
    assert linked.as_data()["linkage"]["who"]["largest"] == 2


def test_the_audit_says_the_linkage(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["audit", str(files.out), "-p", str(files.policy)]) == 0
    assert "who: 120 tokens; one links 1 groups at most, 1.00 on average" in capsys.readouterr().err
    assert run(["audit", str(files.out), "-p", str(files.policy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["linkage"]["who"] == {"tokens": 120, "largest": 1, "mean": 1.0}


def with_value(name: str, value: Any) -> Callable[[list[Record]], None]:
    def plant(records: list[Record]) -> None:
        records[3][name] = value

    return plant


def moved_apart(records: list[Record]) -> None:
    """Move all dates of one day by ten days more, as if people's shifts were not one."""
    records[3]["born"] = "1890-01-01"


PLANTED: list[tuple[str, Callable[[list[Record]], None], str]] = [
    ("a raw name", with_value("who", "P3"), "field-form"),
    ("no token", with_value("who", None), "field-form"),
    ("too long a prefix", with_value("shard", "abc"), "field-form"),
    ("a whole card", with_value("card", "4111111111110003"), "field-form"),
    ("a mask of somebody else", with_value("card", "***ff"), "not-in-raw"),
    ("an exact pay", with_value("pay", 13.2), "field-form"),
    ("a pay above the top", with_value("pay", 40.5), "field-form"),
    ("an address in a note", with_value("note", "p3@x.org"), "field-form"),
    ("a number in a note", with_value("note", "5550100199"), "field-form"),
    ("no date", with_value("born", "soon"), "field-form"),
    ("a date moved too far", moved_apart, "shift"),
    ("a dropped identifier", with_value("name", "Name3"), "identifier-published"),
]


@pytest.mark.parametrize(("plant", "code"), [row[1:] for row in PLANTED], ids=[row[0] for row in PLANTED])
def test_what_is_planted_is_found(
    files: Files, plant: Callable[[list[Record]], None], code: str, tmp_path: Path
) -> None:
    records = files.records()
    plant(records)
    out = tmp_path / "out.jsonl"
    out.write_text("".join(json.dumps(record) + "\n" for record in records))
    rules = read_rules(files.policy)
    result = audit_file(out, rules, read_original(files.raw, rules))
    assert code in {finding.code for finding in result.findings}
    assert any(code in check.codes and not check.kept for check in result.checks)


def test_a_token_that_is_a_raw_value_is_found(files: Files, tmp_path: Path) -> None:
    raw = raw_records()
    raw[0]["shard"] = raw[0]["who"] = files.records()[0]["who"]
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in raw))
    rules = read_rules(files.policy)
    codes = {finding.code for finding in audit_file(files.out, rules, read_original(path, rules)).findings}
    assert "raw-value" in codes


def test_a_person_with_two_shifts_is_found(files: Files, tmp_path: Path) -> None:
    """Two records of one person, moved differently, both within the bound."""
    raw = {json.dumps([r["pay"], r["age"]]): r for r in raw_records()}
    assert len(raw) == 120  # otherwise no record would be sure
    records = files.records()
    changed = 0
    for record in records:
        day = int(record["born"][8:])
        if 2 <= day <= 27 and changed < 60:
            record["born"] = f"{record['born'][:8]}{day + 1:02d}"
            changed += 1
    out = tmp_path / "out.jsonl"
    out.write_text("".join(json.dumps(record) + "\n" for record in records))
    rules = read_rules(files.policy)
    result = audit_file(out, rules, read_original(files.raw, rules))
    assert "shift" in {finding.code for finding in result.findings}


def test_the_auditor_knows_every_kind() -> None:
    assert set(known_fields()) == set(PUBLISH_KINDS.words) - {"drop", "keep"}
