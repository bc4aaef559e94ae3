from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from stream_anon import demo
from stream_anon.cli import run_command as run
from stream_anon.cli.live import Picture, Plain
from stream_anon.core.schema import Schema
from stream_anon.demo.stage import Stage
from stream_anon.demo.witness import Witness

COMMAND = [sys.executable, "-m", "stream_anon", "demo"]
PATIENCE = 120


def test_the_audit_of_a_short_run() -> None:
    result = subprocess.run([*COMMAND, "--seconds", "2", "--json"], capture_output=True, timeout=PATIENCE, check=False)
    found = json.loads(result.stdout)
    *checks, in_time = found["checks"]
    assert [check["ok"] for check in checks] == [True] * 6
    assert in_time["ok"] is (found["delay"]["max"] <= found["delay"]["bound"]) is found["ok"]
    assert result.returncode == (0 if found["ok"] else 1)  # a busy machine may be late, and must say so
    assert found["interrupted"] is False
    records = found["records"]
    assert records["in"] == records["out"] + records["suppressed"] >= 1000
    assert records["rejected"] == {}
    assert found["smallest_group_people"] >= 5
    assert found["fewest_values"]["diagnosis"] >= 3
    assert 0 < found["delay"]["p50"] <= found["delay"]["p99"]
    assert found["delay"]["bound"] == 3
    assert found["loss_per_attribute"].keys() == {"birth_year", "zip", "gender", "country"}
    assert all(0 <= loss < 1 for loss in found["loss_per_attribute"].values())
    talk = result.stderr.decode().splitlines()
    assert any(line.startswith("   1 s  in ") for line in talk)
    assert talk[-1] == "every promise kept — next: stream-anon demo --save hospital" or not found["ok"]
    assert "\x1b" not in result.stderr.decode()


def test_a_terminal_shows_a_picture() -> None:
    main, other = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "30"}
    command = [*COMMAND, "--seconds", "2", "--rate", "500"]
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment)
    os.close(other)
    seen = b""
    try:
        while chunk := os.read(main, 1 << 16):
            seen += chunk
    except OSError:  # the way a terminal tells that nobody writes to it any more
        pass
    os.close(main)
    assert process.wait(PATIENCE) in (0, 1)  # 1 on a busy machine
    text = seen.decode()
    for word in ("waiting", "p99", "information lost", "bound 3 s", "before", "after", "█", "every record once"):
        assert word in text
    assert "Traceback" not in text


def test_ctrl_c_ends_with_a_summary() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--seconds", "600", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("   1 s"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    found = json.loads(out)
    assert process.returncode == (130 if found["ok"] else 1)
    assert found["interrupted"] is True
    assert found["records"]["in"] == found["records"]["out"] + found["records"]["suppressed"]
    assert "every record once" in err


USAGE = [
    # remark, options, exit code, told
    ("no rate", ["--rate", "0"], 2, "--rate"),
    ("a rate that is no number", ["--rate", "fast"], 2, "--rate"),
    ("no time", ["--seconds", "0"], 2, "--seconds"),
    ("a negative seed", ["--seed", "-1"], 2, "--seed"),
    ("no such policy", ["-p", "nowhere.yaml"], 3, "missing-file"),
    (
        "a policy for other records",
        ["-p", "other.yaml"],
        1,
        "error: the demo's records have no age; their fields are: ",
    ),
]


@pytest.mark.parametrize(("options", "code", "told"), [u[1:] for u in USAGE], ids=[u[0] for u in USAGE])
def test_usage(
    options: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.yaml").write_text(demo.policy_text().replace("birth_year:", "age:"))
    assert run(["demo", *options]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err


def test_saved_files_are_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--save", "hospital"]) == 0
    assert "next: stream-anon check hospital/policy.yaml --data hospital/records.jsonl" in capsys.readouterr().err
    assert run(["check", "hospital/policy.yaml", "--data", "hospital/records.jsonl", "--strict"]) == 0
    assert len(Path("hospital/records.jsonl").read_bytes().splitlines()) == 1000
    capsys.readouterr()
    assert run(["demo", "--save", "hospital"]) == 1
    assert capsys.readouterr().err == "error: hospital/policy.yaml: already exists; name another folder\n"


def schema() -> Schema:
    return Schema.compile(demo.policy())


def play(view: Picture | Plain) -> dict[str, Any]:
    """A performance on a clock of its own, which moves on each time it is looked at: nothing waits."""
    steps = count()
    stage = Stage(schema(), rate=200, seconds=6, seed=3, clock=lambda: next(steps) / 1000)
    with view as shown:
        stage.run(lambda seconds: None, shown)
    assert stage.pipeline.late == 0
    assert all(check.ok for check in stage.witness.checks(stage.pipeline.tally.suppressed))
    return stage.pipeline.tally.summary()


@pytest.mark.parametrize("view", [Picture, Plain])
def test_the_same_seed_gives_the_same_groups(view: type[Picture] | type[Plain], tmp_path: Path) -> None:
    with (tmp_path / "screen").open("w") as screen:
        console = Console(file=screen, width=80)
        assert play(view(console)) == play(view(console))
    assert "p50" in (tmp_path / "screen").read_text()


ORIGINALS = [msgspec.json.decode(record) for record in islice(demo.admissions(5), 5)]
NUMBERS = [0, 1, 2, 3, 4]


def published(**changes: Any) -> list[dict[str, Any]]:
    """What could be published of the originals: everything as general as can be, unless changed in the first line."""
    lines = [
        {"birth_year": [1930, 2026], "zip": "*", "gender": "*", "country": "any", "diagnosis": illness, "ward": "A"}
        | {"_anon": {"group": "g", "size": 5}}
        for illness in ("flu", "flu", "flu", "ulcer", "diabetes")
    ]
    return [lines[0] | changes, *lines[1:]]


TAMPERED: list[tuple[str, list[int], list[dict[str, Any]], str]] = [
    # remark, numbers of the records, what is published of them, what must be found broken
    ("all in order", NUMBERS, published(), ""),
    ("a record twice", [0, 1, 2, 3, 3], published(), "every record once"),
    ("a record less", [0, 1, 2, 3], published()[1:], "every record once"),
    ("too few people", [0, 1, 2, 3], published()[1:], "at least 5 people in a group"),
    ("too few values", NUMBERS, published()[:3] + published()[:2], "at least 3 values of diagnosis"),
    ("another range in one line", NUMBERS, published(birth_year=[1930, 2020]), "all alike within a group"),
    ("two groups in one", NUMBERS, published(_anon={"group": "h", "size": 5}), "all alike within a group"),
    ("a wrong size", NUMBERS, published(_anon={"group": "g", "size": 6}), "all alike within a group"),
    ("a range without the value", NUMBERS, published(birth_year=[1900, 1901]), "ranges hold their values"),
    ("an identifier", NUMBERS, published(patient_id="x"), "no identifier, no undeclared field"),
    (
        "an identifier under another name",
        NUMBERS,
        published(ward=ORIGINALS[0]["name"]),
        "no identifier, no undeclared field",
    ),
    ("a field nobody declared", NUMBERS, published(phone="x"), "no identifier, no undeclared field"),
]


@pytest.mark.parametrize(("numbers", "lines", "broken"), [t[1:] for t in TAMPERED], ids=[t[0] for t in TAMPERED])
def test_the_witness_sees(numbers: Sequence[int], lines: list[dict[str, Any]], broken: str) -> None:
    witness = Witness(schema())
    witness.arrive([(i, msgspec.json.encode(record)) for i, record in enumerate(ORIGINALS)], now=10.0)
    witness.leave(numbers, [msgspec.json.encode(line) for line in lines], now=11.0)
    failed = [check.name for check in witness.checks(withheld=0) if not check.ok]
    assert (broken in failed) if broken else not failed


def test_the_witness_sees_what_is_late() -> None:
    witness = Witness(schema())
    witness.arrive([(i, msgspec.json.encode(record)) for i, record in enumerate(ORIGINALS)], now=10.0)
    witness.leave(NUMBERS, [msgspec.json.encode(line) for line in published()], now=13.5)
    assert [check.name for check in witness.checks(withheld=0) if not check.ok] == ["within the delay bound"]


def test_a_broken_promise_fails_the_demo(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Witness, "_covers", lambda *_: False)
    assert run(["demo", "--seconds", "0.2", "--rate", "200"]) == 1
    told = capsys.readouterr().err
    assert "FAILED  ranges hold their values" in told
    assert told.splitlines()[-1].startswith("a promise was broken: this is a defect")


@pytest.mark.parametrize("command", ["demo", "pipe"])
def test_help_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"stream-anon {command}" in capsys.readouterr().out.split("Examples")[1]
