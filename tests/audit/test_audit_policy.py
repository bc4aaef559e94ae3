"""The auditor's reading of a policy agrees with the anonymizer's about variables, and refuses what is not set."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_anon.auditor.policy import read_rules
from stream_anon.cli import run_command as run
from stream_anon.errors import PolicyError
from stream_anon.policy import load

POLICY = """version: 1
name: table
attributes:
  sex: {role: quasi_identifier, type: category, hierarchy: {kind: flat, values: [f, m, "$${x}"]}}
  ill: {role: sensitive}
privacy:
  - model: k_anonymity
    k: ${LEAST}
  - model: l_diversity
    attribute: ill
    l: ${SOME:-2}
"""


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LEAST", "7")
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def test_variables_mean_the_same_to_both(policy: Path) -> None:
    rules, loaded = read_rules(policy), load(policy).policy
    assert rules.k == loaded.privacy[0].k == 7
    assert rules.models[1].l == loaded.privacy[1].l == 2
    assert not isinstance(rules.quasi["sex"].read("${x}"), str)  # a label, not the code of a fault


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_what_is_not_set_is_refused(policy: Path, value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAST")
    if value is not None:
        monkeypatch.setenv("LEAST", value)
    with pytest.raises(PolicyError) as mine:
        read_rules(policy)
    with pytest.raises(PolicyError) as theirs:
        load(policy)
    assert mine.value.diagnostics == theirs.value.diagnostics
    assert (mine.value.diagnostics[0].code, mine.value.diagnostics[0].line) == ("unset-variable", 8)


def test_the_commands_end_with_3(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LEAST")
    out = str(policy.with_name("out.jsonl"))
    for command in (["audit", out], ["attack", out, "--raw", out]):
        assert run([*command, "-p", str(policy)]) == 3
        assert "policy.yaml:8:8: error unset-variable: the environment variable LEAST is not set" in (
            capsys.readouterr().err
        )


def test_half_a_variable_is_refused(policy: Path) -> None:
    policy.write_text(policy.read_text().replace("name: table", "name: 'a${'"))
    with pytest.raises(PolicyError, match="bad-variable"):
        read_rules(policy)


def test_an_auditor_needs_no_secret(policy: Path) -> None:
    policy.write_text(f"secret: ${{NOBODY_TOLD_ME}}\n{policy.read_text()}")
    assert read_rules(policy).k == 7
