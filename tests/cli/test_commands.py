from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stream_anon import __version__, cli
from stream_anon.cli import output
from stream_anon.cli import run_command as run
from stream_anon.cli.output import excerpt
from stream_anon.errors import Diagnostic, PrivacyViolation

COMMAND = [sys.executable, "-c", "from stream_anon.__main__ import main; main()"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"stream-anon {__version__}\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["check"], ["check", "--nonsense"], ["schema", "extra"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: stream-anon" in captured.err


@pytest.mark.parametrize("command", ["check", "schema"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert f"stream-anon {command} " in capsys.readouterr().out.split("Example")[1]


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["required"] == ["version", "name", "attributes", "privacy"]
    assert set(schema["$defs"]) >= {"QuasiIdentifier", "KAnonymitySettings", "CsvHierarchy"}


FAILURES = [
    # remark, what is raised, exit code, told
    ("a defect", ValueError("hidden7"), 1, "internal error (ValueError)"),
    ("a group that breaks the policy", PrivacyViolation("group of 2 below k"), 70, "error: group of 2 below k"),
    ("Ctrl-C", KeyboardInterrupt(), 130, ""),
]


@pytest.mark.parametrize(("error", "code", "told"), [c[1:] for c in FAILURES], ids=[c[0] for c in FAILURES])
def test_failure(
    error: BaseException, code: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(value: object) -> None:
        raise error

    monkeypatch.delenv("STREAM_ANON_DEBUG", raising=False)
    monkeypatch.setattr(output, "print_json", fail)
    assert run(["schema"]) == code
    talk = capsys.readouterr().err
    assert talk.startswith(told)
    assert "hidden7" not in talk
    assert "Traceback" not in talk


def test_traceback_only_on_request(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(value: object) -> None:
        raise ValueError

    monkeypatch.setattr(cli.output, "print_json", fail)
    assert run(["--debug", "schema"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run([*COMMAND, "schema"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert result.returncode == 1
    assert result.stderr == b""


def test_no_colour_in_a_pipe() -> None:
    result = subprocess.run([*COMMAND, "check", "nowhere.yaml"], capture_output=True, check=False)
    assert result.returncode == 3
    assert b"\x1b" not in result.stderr
    assert result.stderr.startswith(b"nowhere.yaml: error missing-file: ")


EXCERPTS = [
    # remark, line, column, width, shown
    ("a word", "name: a b", 7, 3, ["  name: a b", "        ^^^"]),
    ("a tab stays a tab", "\tname: x", 8, 1, ["  \tname: x", "  \t      ^"]),
    ("wide characters take two cells", "名: x", 4, 1, ["  名: x", "      ^"]),
    ("the end of the line", "ab", 3, 1, ["  ab", "    ^"]),
    ("a width beyond the line", "ab", 2, 99, ["  ab", "   ^"]),
    ("the file as a whole", "ab", 0, 1, []),
    ("an empty line", "", 1, 1, []),
    ("a long line is cut", "x" * 500 + "y" + "z" * 500, 501, 1, ["  " + "x" * 36 + "y" + "z" * 73, " " * 38 + "^"]),
]


@pytest.mark.parametrize(("line", "column", "width", "shown"), [c[1:] for c in EXCERPTS], ids=[c[0] for c in EXCERPTS])
def test_excerpt(line: str, column: int, width: int, shown: list[str]) -> None:
    assert excerpt(line, column, width) == shown


def test_escape_sequences_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    output.show([Diagnostic("code", "a\x1b[2Jb", "p.yaml", hint="c\x1b[2Jd")])
    assert capsys.readouterr().err == "p.yaml: error code: a·[2Jb\n  hint: c·[2Jd\n"


def test_a_line_with_a_secret_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("secret: hunter2\n")
    output.show([Diagnostic("wrong-type", "message", str(file), 1, 9)])
    assert capsys.readouterr().err == f"{file}:1:9: error wrong-type: message\n"


def test_a_comment_is_not_shown_as_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("# Proposed\nversion: 1\n")
    output.show([Diagnostic("no-kafka", "message", str(file), 1, 1)])
    assert capsys.readouterr().err == f"{file}:1:1: error no-kafka: message\n"


def test_a_misspelt_command_is_guessed_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pip"]) == 2
    assert capsys.readouterr().err.count("'pipe'") == 1
