"""`compare`, as a user calls it."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from stream_anon.cli import run_command as run
from stream_anon.demo import admissions, policy_text


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(policy_text(), encoding="utf-8")
    Path("data.jsonl").write_bytes(b"".join(record + b"\n" for record in islice(admissions(3), 600)))
    return tmp_path


def compared(capsys: pytest.CaptureFixture[str], *more: str) -> list[dict[str, Any]]:
    assert run(["compare", "data.jsonl", "-p", "policy.yaml", "--json", *more]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["runs"]
    return found


def test_every_pair_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = compared(capsys, "--k", "5,20", "--max-delay", "100,300,200ms", "--algorithm", "cail,fads,mondrian")
    settings = [(r["k"], r["algorithm"], str(r["max_delay"])) for r in runs]
    assert len(settings) == len(set(settings)) == 2 * (3 + 3 + 1)
    for r in runs:
        assert r["published"] + r["suppressed"] == 600
        assert r["smallest_group_people"] >= r["k"]
        if r["max_delay"]:
            bound = r["max_delay"].get("time") or r["max_delay"]["records"] / 1000
            assert 0 < r["delay_mean"] <= r["delay_longest"] <= bound * 1.06  # known to a twentieth of the bound
    loss = {s: r["loss"] for s, r in zip(settings, runs, strict=True)}
    assert loss[5, "cail", "{'records': 300}"] < loss[5, "cail", "{'records': 100}"]
    assert loss[5, "cail", "{'records': 300}"] < loss[20, "cail", "{'records': 300}"]


def test_the_same_as_preview(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison of one setting is a preview of it."""
    [one] = compared(capsys, "--k", "5", "--max-delay", "3s", "--algorithm", "cail", "--rate", "300")
    assert run(["preview", "data.jsonl", "-p", "policy.yaml", "--rate", "300", "--json"]) == 0
    other = json.loads(capsys.readouterr().out)
    assert one["loss"] == other["loss"]
    assert one["delay_mean"] == other["delay"]["mean"]


def test_files_and_terminal(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "data.jsonl", "-p", "policy.yaml", "--k", "5", "--max-delay", "100,200", "--limit", "500"]
    assert run([*arguments, "--algorithm", "cail,sweep", "--html", "page.html"]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "whole table" in told.err
    assert told.err.splitlines()[-1].startswith("next: write what you choose into policy.yaml; cail loses least")
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert "sweep" in page
    assert run([*arguments, "--html", "page.html"]) == 1


def test_a_picture(place: Path) -> None:
    arguments = ["compare", "data.jsonl", "-p", "policy.yaml", "--k", "5", "--max-delay", "100,200", "--limit", "300"]
    assert run([*arguments, "--algorithm", "cail,mondrian", "--png", "chart.png"]) == 0
    assert Path("chart.png").read_bytes().startswith(b"\x89PNG")


MISTAKES = [
    # remark, arguments, exit code, what the message names
    ("no algorithm", ("--algorithm", "cial"), 2, "cail"),
    ("an algorithm that cannot", ("--algorithm", "guarding"), 3, "these can"),
    ("no number", ("--k", "five"), 2, "whole number"),
    ("no people", ("--k", "1"), 2, "whole number"),
    ("no bound", ("--max-delay", "soon"), 2, "5s is time"),
    ("nothing", ("--k", ","), 2, "nothing to compare"),
]


@pytest.mark.parametrize(("more", "code", "word"), [c[1:] for c in MISTAKES], ids=[c[0] for c in MISTAKES])
def test_mistakes(place: Path, more: tuple[str, ...], code: int, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "data.jsonl", "-p", "policy.yaml", *more]) == code
    assert word in capsys.readouterr().err
