"""One file is never read and written by one command, nor written by two: rows would vanish, or come back as input."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest

from stream_anon.cli import run_command as run

POLICY = """
version: 1
name: t
secret: a secret only for the tests, of no value
attributes:
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [10]}}
  note: {role: insensitive}
privacy: [{model: k_anonymity, k: 2}]
stream: {max_delay: {records: 10}}
"""
TABLE = "age,note\n" + "".join(f"{20 + i},n{i}\n" for i in range(30)) + "1,2,3\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(POLICY)
    Path("t.csv").write_text(TABLE)
    Path("link.csv").symlink_to("t.csv")
    Path("hard.csv").hardlink_to("t.csv")
    return tmp_path


ONE_FILE = [
    ["anonymize", "t.csv", "-p", "p.yaml", "--force", "-o", "t.csv"],
    ["anonymize", "t.csv", "-p", "p.yaml", "--force", "-o", "./hard.csv"],
    ["anonymize", "link.csv", "-p", "p.yaml", "--force", "-o", "o.csv", "--report", "t.csv"],
    ["anonymize", "t.csv", "-p", "p.yaml", "-o", "o.csv", "--dead-letters", "link.csv"],
    ["anonymize", "t.csv", "-p", "p.yaml", "-o", "o.csv", "--dead-letters", "./o.csv"],
    ["anonymize", "t.csv", "-p", "p.yaml", "-o", "o.csv", "--dead-letters", "p.yaml"],
    ["replay", "t.csv", "-p", "p.yaml", "--rate", "1", "-o", "o.csv", "--dead-letters", "o.csv"],
    ["replay", "t.csv", "-p", "p.yaml", "--rate", "1", "-o", "o.csv", "--dead-letters", "t.csv"],
    ["init", "t.csv", "-o", "link.csv", "--force"],
    ["preview", "t.csv", "-p", "p.yaml", "--html", "t.csv", "--force"],
    ["compare", "t.csv", "-p", "p.yaml", "--html", "c.html", "--png", "c.html"],
    ["audit", "t.csv", "-p", "p.yaml", "--html", "hard.csv", "--force"],
]


@pytest.mark.parametrize("command", ONE_FILE, ids=lambda command: f"{command[0]} {command[-1]}")
def test_a_command_keeps_its_files_apart(folder: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command) == 1
    assert "reads or writes it already; name another file" in capsys.readouterr().err
    assert (Path("t.csv").read_text(), Path("p.yaml").read_text()) == (TABLE, POLICY)
    assert sorted(path.name for path in folder.iterdir()) == ["hard.csv", "link.csv", "p.yaml", "t.csv"]


@pytest.mark.parametrize("options", [["--dead-letters", "link.csv"], []], ids=["dead letters", "output"])
def test_pipe_does_not_read_what_it_writes(folder: Path, options: list[str]) -> None:
    """Every rejected line used to become another one: the file grew until the disk was full."""
    command = [sys.executable, "-m", "stream_anon", "pipe", "-p", "p.yaml", "--csv", *options]
    with Path("t.csv").open("rb") as source, Path("t.csv").open("ab") as end:
        out = subprocess.PIPE if options else end
        done = subprocess.run(command, stdin=source, stdout=out, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1
    assert b"must be different files" in done.stderr
    assert Path("t.csv").read_text() == TABLE


@pytest.mark.parametrize("of", ["o.csv", "bad.jsonl"])
def test_two_replays_do_not_write_one_file(folder: Path, of: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["replay", "t.csv", "-p", "p.yaml", "--rate", "1", "-o", "o.csv", "--dead-letters", "bad.jsonl"]
    with Path(f"{of}.partial").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert run(command) == 1
        assert "another run is writing it" in capsys.readouterr().err
        assert Path(f"{of}.partial").stat().st_size == 0
    assert run(command) == 0
    assert len(Path("o.csv").read_text().splitlines()) == 31
