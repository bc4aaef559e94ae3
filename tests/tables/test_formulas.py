"""Cells of a CSV file that a spreadsheet would run are written as text, and read back by the auditor."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from test_one_verdict import POLICY

from stream_anon.cli import run_command as run

NASTY = ["=HYPERLINK(1)", "+1", "-2", "@x", "'=quoted", "plain", "'tis", "\t=1", "\n=1", "\uff1d1", "\uff20x", "a=b"]
SIGNS = "=+-@\t\n\uff1d\uff20"


@pytest.mark.parametrize("guarded", [True, False])
def test_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guarded: bool) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    rows = [
        {
            "patient": f"p{i}",
            "year": 1950 + i,
            "zip": f"021{i:02}",
            "diagnosis": ["flu", "ulcer"][i % 2],
            "ward": NASTY[i % 12],
        }
        for i in range(24)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["anonymize", "t.jsonl", "-p", "policy.yaml", "-o", "o.csv"]
    assert run([*command, *([] if guarded else ["--no-quote-formulas"])]) == 0
    with (tmp_path / "o.csv").open(newline="") as file:
        wards = [row["ward"] for row in csv.DictReader(file)]
    assert len(wards) == 24
    risky = [ward for ward in wards if ward[:1] in SIGNS]
    assert risky == [] if guarded else len(risky) == 16
    if guarded:
        assert run(["audit", "o.csv", "-p", "policy.yaml", "--raw", "t.jsonl"]) == 0


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_raw_table_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """A table that was exported with such marks keeps them: the auditor took them off, and missed the rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    lines = [f"p{i},{1950 + i},021{i:02},{['flu', 'ulcer'][i % 2]},'=ward{i % 2}" for i in range(24)]
    (tmp_path / "t.csv").write_text("\n".join(["patient,year,zip,diagnosis,ward", *lines]) + "\n")
    assert run(["anonymize", "t.csv", "-p", "policy.yaml", "-o", f"o{suffix}"]) == 0
    assert run(["audit", f"o{suffix}", "-p", "policy.yaml", "--raw", "t.csv"]) == 0


def test_a_label_without_end_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    lines = [f"p{i},{1950 + i},021{i:02},{['flu', 'ulcer'][i % 2]},a" for i in range(24)]
    (tmp_path / "t.csv").write_text("\n".join(["patient,year,zip,diagnosis,ward", *lines]) + "\n")
    assert run(["anonymize", "t.csv", "-p", "policy.yaml", "-o", "o.csv"]) == 0
    text = (tmp_path / "o.csv").read_text()
    (tmp_path / "o.csv").write_text(text.replace('"[19', '"' + "[" * 100_000 + "[19", 1))
    assert run(["audit", "o.csv", "-p", "policy.yaml"]) == 4
