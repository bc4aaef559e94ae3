"""Where a page comes from: date, version, policy and the digests of its files; on every page alike."""

from __future__ import annotations

import hashlib
import re
from itertools import islice
from pathlib import Path

import pytest

from stream_anon import __version__
from stream_anon.cli import run_command as run
from stream_anon.demo import admissions, policy_text

POLICY = ["-p", "policy.yaml"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(policy_text(), encoding="utf-8")
    Path("raw.jsonl").write_bytes(b"\n".join(islice(admissions(3), 200)) + b"\n")
    made = ["anonymize", "raw.jsonl", *POLICY, "-o", "out.jsonl", "--algorithm", "mondrian"]
    assert run([*made, "--html", "made.html"]) == 0


def sha(name: str) -> str:
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()


def test_every_page_says_what_it_was_made_of() -> None:
    assert run(["audit", "out.jsonl", *POLICY, "--raw", "raw.jsonl", "--html", "audit.html"]) == 0
    assert run(["attack", "out.jsonl", *POLICY, "--raw", "raw.jsonl", "--html", "attack.html"]) == 0
    for name in ("made.html", "audit.html", "attack.html"):
        text = Path(name).read_text()
        assert sha("out.jsonl") in text, name
        assert sha("raw.jsonl") in text, name
        assert sha("policy.yaml") in text, name
        assert f"stream-anon {__version__}" in text, name
        assert re.search(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", text), name
    made = Path("made.html").read_text()
    assert "fingerprint" in made
    for word in ("quasi identifier", "sensitive", "prefix", "l_diversity", "attribute diagnosis, l 3"):
        assert word in made
    assert "homogeneity (diagnosis)" in Path("attack.html").read_text()


def test_the_old_name_of_the_option_still_works() -> None:
    made = ["anonymize", "raw.jsonl", *POLICY, "-o", "again.jsonl", "--algorithm", "mondrian"]
    assert run([*made, "--report", "again.html"]) == 0
    assert Path("again.html").exists()


def test_a_page_of_attacks_is_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("page.html").write_text("mine")
    assert run(["attack", "out.jsonl", *POLICY, "--raw", "raw.jsonl", "--html", "page.html"]) == 1
    assert "--force" in capsys.readouterr().err
