"""A policy without a subject: no command may speak of people, whom nobody counted. Every group is one person's rows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from stream_anon.cli import run_command as run
from stream_anon.core.schema import Schema
from stream_anon.demo import policy_text
from stream_anon.observe.metrics import Metrics
from stream_anon.policy import load

POLICY = """
version: 1
name: rows
secret: a secret only for the tests, of some length
attributes:
  who: {role: identifier}
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [1, 10]}}
  ill: {role: sensitive}
privacy:
  - {model: k_anonymity, k: 5}
  - {model: alpha_k, attribute: ill, k: 5, alpha: 0.9}
stream: {max_delay: {records: 20}}
"""
CLAIM = re.compile(r"people|person", re.IGNORECASE)
ADMITTED = re.compile(r"people (and risk )?(were )?not judged|identifies people", re.IGNORECASE)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Ten people with five records each, all five alike, and what `anonymize` publishes of them."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    ills = ["flu", "ulcer", "gout", "acne", "mumps"]
    rows = [{"who": f"p{age}", "age": age, "ill": ill} for age in range(5, 95, 9) for ill in ills]
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    published = ["-p", str(tmp_path / "policy.yaml"), "-o", str(tmp_path / "out.jsonl")]
    assert run(["anonymize", str(tmp_path / "raw.jsonl"), *published, "-a", "mondrian"]) == 0
    return tmp_path


def commands(place: Path) -> dict[str, list[str]]:
    policy, raw, out = (str(place / name) for name in ("policy.yaml", "raw.jsonl", "out.jsonl"))
    page = ["--html", str(place / "page.html"), "--force"]
    return {
        "anonymize": ["anonymize", raw, "-p", policy, "-o", str(place / "a.csv"), "--report", page[1], "--force"],
        "replay": ["replay", raw, "-p", policy, "-o", str(place / "r.jsonl"), "--rate", "100"],
        "replay, batch": ["replay", raw, "-p", policy, "-o", str(place / "b.jsonl"), "-a", "sweep"],
        "preview": ["preview", raw, "-p", policy, "--rows", "0", *page],
        "compare": ["compare", raw, "-p", policy, "--k", "2", "--max-delay", "20", "-a", "cail", *page],
        "audit": ["audit", out, "-p", policy, *page],
        "audit, raw": ["audit", out, "-p", policy, "--raw", raw, *page],
        "audit, no policy": ["audit", out, *page],
        "attack": ["attack", out, "-p", policy, "--raw", raw],
    }


@pytest.mark.parametrize("name", list(commands(Path())))
def test_no_command_speaks_of_people(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(commands(place)[name]) == 0
    told = capsys.readouterr()
    page = place / "page.html"
    shown = read_page(page) if page.exists() else ""
    text = " ".join(told.out.split() + told.err.split())
    assert "people not judged" in text.lower()
    assert not shown or re.search("not judged|at least", shown)
    for said in (text, shown):
        rest = ADMITTED.sub("", said).replace("one person may have several", "")
        rest = rest.replace("another person's", "").replace("of a person whose quasi-identifiers one knows", "")
        assert not CLAIM.search(rest), CLAIM.findall(rest)


def test_pipe_counts_records(place: Path) -> None:
    with (place / "raw.jsonl").open("rb") as raw:
        command = [sys.executable, "-m", "stream_anon", "pipe", "-p", str(place / "policy.yaml")]
        told = subprocess.run(command, stdin=raw, capture_output=True, text=True, check=True, timeout=300)
    assert "people not judged" in told.stderr
    assert {json.loads(line)["_anon"]["subjects"] for line in told.stdout.splitlines()} == {None}


def test_the_audit_says_so_first(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    audit = commands(place)["audit, raw"]
    assert run(audit) == 0
    first, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith("passed; people not judged")
    assert "Audit: passed, people not judged" in (place / "page.html").read_text()
    assert run([*audit, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"].startswith("passed; people not judged")
    assert (found["k_counts"], found["required"], found["fewest_rows"]) == ("records", 5, 5)
    for name in ("fewest_people", "required_people", "people", "chance"):
        assert found[name] is None, name
    assert found["raw"]["fewest_people"] is found["raw"]["chance"] is None
    assert not any(CLAIM.search(check["promise"]) for check in found["checks"])


@pytest.mark.parametrize("name", ["anonymize", "replay", "replay, batch", "preview", "attack", "compare"])
def test_json_has_null_for_people(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run([*commands(place)[name], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    found = found["runs"][0] if name == "compare" else found
    assert found["k_counts"] == "records"
    assert all(value is None for key, value in found.items() if key.endswith("people"))


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_published_records_declare_no_people(suffix: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy, raw, out = (str(place / name) for name in ("policy.yaml", "raw.jsonl", f"published.{suffix}"))
    assert run(["anonymize", raw, "-p", policy, "-o", out]) == 0
    capsys.readouterr()
    assert run(["audit", out, "-p", policy, "--raw", raw, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fewest_people"] is None
    if suffix == "jsonl":
        assert {record["_anon"]["subjects"] for record in records(Path(out))} == {None}


def test_a_number_of_people_that_nobody_could_count_is_found(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claimed = [record | {"_anon": record["_anon"] | {"subjects": 5}} for record in records(place / "out.jsonl")]
    (place / "out.jsonl").write_text("".join(json.dumps(record) + "\n" for record in claimed))
    assert run(commands(place)["audit"]) == 4
    assert "subjects" in capsys.readouterr().err


def test_with_a_subject_the_same_records_fail(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = place / "policy.yaml"
    policy.write_text(POLICY.replace("attributes:", "subject: who\nattributes:", 1))
    claimed = [record | {"_anon": record["_anon"] | {"subjects": 5}} for record in records(place / "out.jsonl")]
    (place / "out.jsonl").write_text("".join(json.dumps(record) + "\n" for record in claimed))
    assert run(commands(place)["audit, raw"]) == 4
    assert "k_anonymity" in capsys.readouterr().err


def test_check_warns(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(place / "policy.yaml")]) == 0
    assert "k counts records, not people" in capsys.readouterr().err


def test_the_demo_counts_records_then(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy_text().replace("subject: patient_id\n", "").replace("time: 3s", "time: 60s"))
    assert run(["demo", "--seconds", "1", "--rate", "200", "--json", "-p", str(policy)]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["smallest_group_people"] is None
    assert found["smallest_group_records"] >= 5
    assert "people not judged" in told.err
    assert "at least 5 records in a group" in told.err


def test_a_worker_tells_what_k_counts(place: Path) -> None:
    schema = Schema.compile(load(place / "policy.yaml"))
    metrics = Metrics("rows", schema.fingerprint, 2.0, ["age"], schema.counts)
    [info] = [m for m in metrics.registry.collect() if m.name == "stream_anon_policy"]
    assert info.samples[0].labels["k_counts"] == "records"


def read_page(path: Path) -> str:
    text = re.sub(r"<style.*?</style>", "", path.read_text(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
