"""Cells of a CSV file that a spreadsheet would run are written as text, and read back by the auditor."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from test_one_verdict import POLICY

from stream_anon.cli import run

NASTY = ["=HYPERLINK(1)", "+1", "-2", "@x", "'=quoted", "plain", "'tis", "\t=1"]


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
            "ward": NASTY[i % 8],
        }
        for i in range(24)
    ]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["anonymize", "t.jsonl", "-p", "policy.yaml", "-o", "o.csv"]
    assert run([*command, *([] if guarded else ["--no-quote-formulas"])]) == 0
    with (tmp_path / "o.csv").open(newline="") as file:
        wards = [row["ward"] for row in csv.DictReader(file)]
    assert len(wards) == 24
    risky = [ward for ward in wards if ward[:1] in "=+-@\t"]
    assert risky == [] if guarded else len(risky) == 15
    if guarded:
        assert run(["audit", "o.csv", "-p", "policy.yaml", "--raw", "t.jsonl"]) == 0
