"""The page of an audit: a verdict per promise, and the figures behind it, as a browser shows them."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path

import pytest
from browser import look

from stream_anon.cli import run_command as run
from stream_anon.demo import admissions, policy_text

AUDIT = ["audit", "out.jsonl", "-p", "policy.yaml"]
RAW = ["--raw", "raw.jsonl"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(policy_text(), encoding="utf-8")
    Path("raw.jsonl").write_bytes(b"\n".join(islice(admissions(3), 200)) + b"\n")
    assert run(["anonymize", "raw.jsonl", "-p", "policy.yaml", "-o", "out.jsonl", "--algorithm", "mondrian"]) == 0
    return tmp_path


def told(*arguments: str, code: int = 0) -> str:
    assert run([*arguments, "--html", "page.html", "--force"]) == code
    return Path("page.html").read_text(encoding="utf-8")


def verdicts(text: str) -> list[tuple[str, str]]:
    return re.findall(r'<li class="\w+"><b>. (\w+)</b><span>(.*?)</span>', text)


def test_a_browser_shows_verdicts_sizes_risk_and_loss(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = told(*AUDIT, *RAW, "--json")
    found = json.loads(capsys.readouterr().out)
    seen = look(place / "page.html", place, "--window-size=1280,1500", f"--screenshot={place / 'page.png'}")
    assert "CONSOLE" not in seen.log
    assert [address for address in seen.asked if address != "data:,"] == []
    assert seen.dom.count("<svg") == 3
    assert (place / "page.png").stat().st_size > 50_000
    assert {kept for kept, _ in verdicts(text)} == {"kept"}
    assert verdicts(text)[0][1] == "every group has at least 5 people"
    assert [promise for _, promise in verdicts(text)] == [check["promise"] for check in found["checks"]]
    assert text.index("Promises</h2>") < text.index("Group sizes</h2>") < text.index("Re-identification risk</h2>")
    for name in ("birth_year", "zip", "gender", "country"):
        assert f">{name}</text>" in text
    assert found["losses"].keys() == {"birth_year", "zip", "gender", "country"}
    assert sum(found["people"].values()) == found["groups"]
    assert found["chance"]["highest"] <= 1 / 5 < found["raw"]["chance"]["highest"]
    assert "Longest delay" not in text  # a file tells no times


def test_the_figures_are_those_of_the_preview(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two programs that share no code, and the same numbers: `anonymize` counts its own groups, `audit` reads them."""
    assert run([*AUDIT, *RAW, "--json"]) == 0
    audited = json.loads(capsys.readouterr().out)
    arguments = ["anonymize", "raw.jsonl", "-p", "policy.yaml", "-o", "again.jsonl", "--algorithm", "mondrian"]
    assert run([*arguments, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert audited["loss"] == pytest.approx(made["loss"], abs=1e-4)
    assert audited["losses"] == pytest.approx(made["loss_per_attribute"], abs=1e-4)


def test_what_is_broken_is_told(place: Path) -> None:
    lines = Path("out.jsonl").read_text().splitlines()
    groups = [json.loads(line)["_anon"]["group"] for line in lines]
    smallest = min(groups, key=groups.count)
    gone = groups.index(smallest)
    Path("out.jsonl").write_text("\n".join(lines[:gone] + lines[gone + 1 :]) + "\n")
    text = told(*AUDIT, *RAW, code=4)
    assert "Audit: FAILED" in text
    assert ("BROKEN", "every group is complete, each of its records is there once") in verdicts(text)
    assert ("kept", "the records of a group look the same") in verdicts(text)
    assert smallest in text
    assert re.search(rf"<td>group {smallest}</td><td>[^<]*size", text), "where to look, and for what"


def test_what_was_not_judged_is_not_called_kept(place: Path) -> None:
    with_policy, bare = told(*AUDIT), told("audit", "out.jsonl")
    assert len(verdicts(bare)) < len(verdicts(with_policy)) < len(verdicts(told(*AUDIT, *RAW)))
    assert "without a policy only what the records say of themselves was judged" in bare
    assert "people were counted as declared" in with_policy
    assert "raw row" not in "".join(promise for _, promise in verdicts(with_policy))


def test_nothing_is_a_page_too(place: Path) -> None:
    Path("out.jsonl").write_text("")
    assert "there are no records: nothing was judged" in told(*AUDIT)


def test_a_page_that_is_there_is_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.html").write_text("mine")
    assert run([*AUDIT, "--html", "page.html"]) == 1
    assert "pass --force" in capsys.readouterr().err
    assert Path("page.html").read_text() == "mine"
