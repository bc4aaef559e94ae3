"""What is small enough to run without the compiler, and that it publishes the same."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stream_anon.cli import run_command, small
from stream_anon.demo import policy_text

ROW = "1980,02139,flu\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with a policy and tables of all kinds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(policy_text())
    (tmp_path / "few.csv").write_text(ROW * 100)
    (tmp_path / "many.csv").write_text(ROW * 10_000)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress((ROW * 10_000).encode()))
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "producer.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("check policy.yaml", True),
        ("check policy.yaml --data few.csv", True),
        ("check policy.yaml --data many.csv", False),
        ("--debug anonymize few.csv -p policy.yaml -o out.csv", True),
        ("anonymize many.csv -p policy.yaml -o out.csv", False),
        ("anonymize packed.csv.gz -p policy.yaml -o out.csv", False),
        ("anonymize producer.csv -p policy.yaml -o out.csv", False),
        ("anonymize folder -p policy.yaml -o out.csv", False),
        ("anonymize s3://bucket/people -p policy.yaml --engine spark", False),
        ("audit many.csv -p policy.yaml", True),
        ("doctor -p policy.yaml", True),
        ("demo", False),
        ("run -p policy.yaml", False),
        ("replay few.csv -p policy.yaml", False),
        ("no such command", False),
        ("", False),
    ],
)
def test_what_is_small(arguments: str, expected: bool, here: Path) -> None:
    assert small.is_small(arguments.split()) is expected


@pytest.mark.parametrize(
    ("text", "leaves", "expected"),
    [(ROW, True, True), (ROW, False, False), (ROW * 3000, True, False), ("", True, True)],
)
def test_a_pipe_is_small_when_its_writer_has_left(
    text: str, leaves: bool, expected: bool, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(small, "STDIN", reading)
    os.write(writing, text.encode())
    if leaves:
        os.close(writing)
    assert small.is_small(["pipe", "-p", "policy.yaml"]) is expected
    os.close(reading)
    if not leaves:
        os.close(writing)


def test_a_small_input_is_published_as_ever_and_loads_no_compiler(here: Path) -> None:
    """Unless the environment asks for it; what is published is the same."""
    pytest.importorskip("numba")
    assert run_command(["demo", "--save", "clinic"]) == 0
    records = (here / "clinic" / "records.jsonl").read_text().splitlines(keepends=True)
    with (here / "clinic" / "policy.yaml").open("a") as policy:
        policy.write(f"\nsecret: {'known to this test alone ' * 2}\n")
    (here / "records.jsonl").write_text("".join(records[:40]))
    ran = {}
    for chosen in ("always", None):
        environment = {name: value for name, value in os.environ.items() if name != "STREAM_ANON_COMPILE"}
        with (here / "records.jsonl").open() as given:
            ran[chosen] = subprocess.run(
                [sys.executable, "-X", "importtime", "-m", "stream_anon", "pipe", "-p", "clinic/policy.yaml"],
                stdin=given, env=environment | ({"STREAM_ANON_COMPILE": chosen} if chosen else {}),
                capture_output=True, text=True, check=True,
            )  # fmt: skip
        assert (" numba" in ran[chosen].stderr) is (chosen == "always")
    assert ran[None].stdout == ran["always"].stdout != ""
    assert "not installed" not in ran[None].stderr
