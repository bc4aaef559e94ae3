"""The same table through every command that reads one: the same lines are refused, with the same codes, and told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stream_anon.cli import run_command as run

POLICY = """
version: 1
name: visits
subject: patient
secret: 0123456789abcdef0123456789abcdef
attributes:
  patient:   {role: identifier}
  year:      {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [1920, 2026], snap: [5, 10]}}
  zip:       {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 5}}
  diagnosis: {role: sensitive}
  ward:      {role: insensitive}
privacy: [{model: k_anonymity, k: 3}, {model: l_diversity, attribute: diagnosis, l: 2}]
stream: {max_delay: {records: 1000}}
"""
HEADER = b"patient,year,zip,diagnosis,ward\n"
ILL = [b"flu", b"ulcer", b"asthma"]
GOOD = [b"p%d,%d,021%02d,%s,A\n" % (i, 1950 + i, i, ILL[i % 3]) for i in range(40)]
MESS = [
    # lines of a table, and of those that are no records: (which of the lines, code)
    (b"p90,1980,02139,Smith, John,flu\n", [(0, "cell_count")]),
    (b"p91,1980,02139\n", [(0, "cell_count")]),
    (b'p92,1980,"02139,flu,A\n', [(0, "not_csv")]),
    (b'p93,1980,"02139"x,flu,A\n', [(0, "not_csv")]),
    (b"p94,1980,02139,fl\xfc,A\n", [(0, "not_utf8")]),
    (b"p95,1980,02139,flu\rA,B\n", [(0, "not_csv")]),
    (b'p96,1980,02139,flu,"two\nlines, and ""quotes"""\n', []),
    (b"\n  \n", []),
    (b"p97,1980,02139," + b"x" * 200_000 + b",A\n", [(0, "not_csv")]),
    (b"p98,1980,02139," + b"x" * (1 << 20) + b",A\n", [(0, "too_large")]),
]
HIDDEN = [b"Smith", b"John", b"p90", b"p92", b"02139x"]


@pytest.fixture
def messy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """A folder with a policy and a table; returns what has to be refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    lines, expected = HEADER, []
    for number, good in enumerate(GOOD):
        lines += good
        if number < len(MESS):
            text, refused = MESS[number]
            expected += [(lines.count(b"\n") + 1 + place, code) for place, code in refused]
            lines += text
    (tmp_path / "t.csv").write_bytes(lines)
    return expected


def told(letters: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(letter["line"], letter["code"]) for letter in letters]


def of_file(name: str) -> list[tuple[int, str]]:
    return told([json.loads(line) for line in Path(name).read_text().splitlines()])


def by_pipe(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str]]:
    command = [sys.executable, "-m", "stream_anon", "pipe", "-p", "policy.yaml", "--csv", "--dead-letters", "bad.jsonl"]
    done = subprocess.run(command, input=Path("t.csv").read_bytes(), capture_output=True, check=True)
    Path("out.jsonl").write_bytes(done.stdout)
    assert b"41 published" in done.stderr
    assert b"53 lines: 1 of the header, 2 blank, 49 records, 1 more lines of records" in done.stderr
    return of_file("bad.jsonl")


def by_anonymize(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str]]:
    assert run(["anonymize", "t.csv", "-p", "policy.yaml", "-o", "o.jsonl", "--dead-letters", "bad.jsonl"]) == 0
    assert "53 lines: 1 of the header, 2 blank, 49 records" in capsys.readouterr().err
    return of_file("bad.jsonl")


def by_replay(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str]]:
    command = ["replay", "t.csv", "-p", "policy.yaml", "-o", "o.jsonl", "--rate", "10", "--dead-letters", "bad.jsonl"]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["consumed"] == found["published"] + found["suppressed"] + sum(found["rejected"].values()) == 49
    assert found["lines"] == {"read": 53, "header": 1, "blank": 2, "continued": 1}
    return of_file("bad.jsonl")


def by_check(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str]]:
    run(["check", "policy.yaml", "--data", "t.csv", "--json"])
    return told(json.loads(capsys.readouterr().out)["rejections"])


def by_preview(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str]]:
    assert run(["preview", "t.csv", "-p", "policy.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rejected"] == len(found["rejections"])
    return told(found["rejections"])


def by_init(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str]]:
    assert run(["init", "t.csv", "-o", "new.yaml", "--json"]) == 0
    return told(json.loads(capsys.readouterr().out)["left_out"])


def by_audit(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str]]:
    assert run(["anonymize", "t.csv", "-p", "policy.yaml", "-o", "o.jsonl", "--json"]) == 0
    capsys.readouterr()
    assert run(["audit", "o.jsonl", "-p", "policy.yaml", "--raw", "t.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return told(found["raw"]["unread"])


Reader = Callable[[pytest.CaptureFixture[str]], list[tuple[int, str]]]
READERS = [by_pipe, by_anonymize, by_replay, by_check, by_preview, by_init, by_audit]


@pytest.mark.parametrize("read", READERS, ids=[read.__name__[3:] for read in READERS])
def test_every_command_refuses_the_same_lines(
    read: Reader, messy: list[tuple[int, str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert read(capsys) == messy
    said = capsys.readouterr()
    written = b"".join(
        path.read_bytes() for path in tmp_path.iterdir() if path.name in ("bad.jsonl", "out.jsonl", "o.jsonl")
    )
    for value in HIDDEN:
        assert value not in written
        assert value.decode() not in said.out + said.err


def test_a_row_that_is_short_of_names_publishes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row has one cell more than the header names: nothing leaves, and that is no success."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "t.csv").write_bytes(HEADER + b"".join(b"1," + line for line in GOOD))
    assert run(["anonymize", "t.csv", "-p", "policy.yaml", "-o", "o.csv"]) == 5
    assert run(["replay", "t.csv", "-p", "policy.yaml", "-o", "o.jsonl", "--rate", "10"]) == 5
    assert not (tmp_path / "o.csv").exists()
    assert not (tmp_path / "o.jsonl").exists()
