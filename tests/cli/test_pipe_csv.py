"""`pipe --csv`: what comes as a table leaves as records."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

from stream_anon.demo import admissions, policy_text

COMMAND = [sys.executable, "-m", "stream_anon"]


def test_csv(tmp_path: Path) -> None:
    """Cells are read by the policy's types; a quoted cell may hold delimiters and line ends; line numbers are told."""
    (tmp_path / "policy.yaml").write_text(policy_text(), encoding="utf-8")
    records = [json.loads(record) for record in islice(admissions(3), 60)]
    lines = [",".join(records[0])]
    for i, record in enumerate(records):
        name = '"two,\nlines ""quoted"""' if i == 5 else record["name"]
        lines.append(",".join(map(str, (record | {"name": name}).values())))
    lines.append("P1,Nobody,not-a-year,02139,female,Canada,flu,A")
    result = subprocess.run(
        [*COMMAND, "pipe", "-p", str(tmp_path / "policy.yaml"), "--csv"],
        input=("\r\n".join(lines) + "\r\n").encode(),
        capture_output=True,
        check=True,
    )
    out = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(out) == 60
    assert sorted(r["diagnosis"] for r in out) == sorted(r["diagnosis"] for r in records)
    assert b"line 63: rejected: wrong_type (birth_year)" in result.stderr


def test_csv_given_as_json_is_told(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(policy_text(), encoding="utf-8")
    result = subprocess.run(
        [*COMMAND, "pipe", "-p", str(tmp_path / "policy.yaml")], input=b"a,b\n1,2\n", capture_output=True
    )
    assert result.stderr.decode().splitlines()[-2].endswith("pass --csv")
    assert result.returncode == 5
