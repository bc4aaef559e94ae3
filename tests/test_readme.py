from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", README, re.DOTALL))
TRIALS = [
    (command, expected)
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def comparable(output: str) -> list[str]:
    """Lines without what differs from run to run: the group's id, the order of its rows, the policy's fingerprint."""
    lines: list[str] = []
    for line in output.splitlines():
        if line.startswith("{"):
            record = json.loads(line)
            for key in ("group", "row"):
                del record["_anon"][key]
            record["_anon"]["policy"] = record["_anon"]["policy"].split("@")[0]
            line = json.dumps(record)
        lines.append(line)
    return sorted(lines)


def test_the_readme_has_its_parts() -> None:
    assert FILES.keys() == {"policy.yaml", "records.jsonl"}
    assert [command.split()[1] for command, _ in TRIALS] == ["check", "pipe"]


@pytest.mark.parametrize(("command", "expected"), TRIALS, ids=[command for command, _ in TRIALS])
def test_commands_print_what_the_readme_says(command: str, expected: str, folder: Path) -> None:
    shell = 'stream-anon() { "$PYTHON" -m stream_anon "$@"; }\n' + command + " 2>&1"
    result = subprocess.run(
        ["bash", "-c", shell],
        cwd=folder,
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0
    assert comparable(result.stdout) == comparable(expected)


def test_every_command_and_exit_code_is_in_the_readme() -> None:
    from stream_anon.cli import COMMANDS

    assert len(COMMANDS) > 10
    for command in COMMANDS:
        assert f"| `stream-anon {command}" in README
    for code in (0, 1, 2, 3, 4, 5, 70, 130):
        assert f"\n| {code} |" in README


def test_every_extra_is_in_the_readme() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    section = README.split("## Extras")[1].split("##")[0]
    for extra in project["optional-dependencies"]:
        assert f"`{extra}`" in section or f"[{extra}]" in section


def test_the_changelog_is_of_this_version() -> None:
    from stream_anon import __version__

    assert __version__ in (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
