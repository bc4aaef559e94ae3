"""Commands that are suggested can be pasted into a shell, whatever the files are called; exposure is warned of."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stream_anon
from stream_anon import cli
from stream_anon.cli.prepare import prepare
from stream_anon.core.lint import exposed
from stream_anon.demo import policy_text
from stream_anon.kafka.transport import TransportError

SOURCE = Path(stream_anon.__file__).parent
COMMAND = re.compile(r"stream-anon [a-z]+ [^:]*$")
NO_FILES = {"published", "judged", "raw", "named", "sample", "table", "best.algorithm", "sampled"}
"""Names in suggestions that are quoted before, as `output.table` does it, or are no files."""


def unquoted(path: Path) -> list[str]:
    """What is put into a suggested command as it is."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.JoinedStr):
            continue
        suggested = False
        for part in node.values:
            if isinstance(part, ast.Constant):
                suggested = suggested or bool(COMMAND.search(str(part.value)))
            elif suggested and isinstance(part, ast.FormattedValue):
                text = ast.unparse(part.value)
                if (
                    text not in NO_FILES
                    and "quote" not in text
                    and "table(" not in text
                    and "--" not in text
                    and "rate" not in text
                ):
                    found.append(f"{path.name}:{node.lineno} {text}")
    return found


def test_every_name_in_a_suggestion_is_quoted() -> None:
    found = [each for path in SOURCE.rglob("*.py") if path.name != "write.py" for each in unquoted(path)]
    assert found == []


def suggestions(talk: str) -> list[str]:
    lines = [line for line in talk.splitlines() if re.search(r"stream-anon (check|pipe|preview) ", line)]
    return [line[line.index("stream-anon ") :] for line in lines]


def test_suggestions_work_as_they_are(tmp_path: Path) -> None:
    """Pasted into a shell, from the first command to the published records."""
    folder = tmp_path / 'it\'s a $(touch pwned) "folder"; `x`'
    program = f"{sys.executable} -m stream_anon"

    def call(command: str) -> str:
        done = subprocess.run(
            command.replace("stream-anon", program, 1), shell=True, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, command + done.stderr
        return done.stderr

    first = subprocess.run(
        [*program.split(), "demo", "--save", str(folder)], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    check, pipe = suggestions(first.stderr)
    (preview,) = suggestions(call(check))
    followed = suggestions(call(f"{preview} --limit 300"))
    call(pipe)
    for command in followed:
        call(command)
    assert not (tmp_path / "pwned").exists()
    assert (tmp_path / "anonymous.jsonl").exists() == any("anonymous.jsonl" in command for command in followed)


KAFKA = '\nkafka: {{bootstrap: "{}", group: g, input: in, output: out{}}}\n'


@pytest.mark.parametrize(
    ("bootstrap", "options", "warned"),
    [
        ("localhost:9092", "", False),
        ("127.0.0.1:9092,[::1]:9092", "", False),
        ("kafka.example.com:9092", "", True),
        ("localhost:9092,10.0.0.7:9092", "", True),
        ("kafka:9092", ", options: {security.protocol: SASL_PLAINTEXT}", True),
        ("kafka:9092", ", options: {security.protocol: SSL}", False),
        ("kafka:9092", ", options: {security_protocol: sasl_ssl}", False),
    ],
)
def test_a_plaintext_connection_to_another_machine(bootstrap: str, options: str, warned: bool, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy_text() + KAFKA.format(bootstrap, options))
    codes = [problem.code for problem in exposed(prepare(file)[0].policy)]
    assert codes == (["plaintext-broker"] if warned else [])


def test_reuse_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(policy_text() + "\nalgorithm: {name: castle, reuse: true}\n")
    done = subprocess.run([sys.executable, "-m", "stream_anon", "check", str(file)], capture_output=True, text=True)
    assert "warning reuse" in done.stderr


@pytest.mark.parametrize("command", ["doctor", "run"])
def test_the_commands_on_kafka_say_it_too(command: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    secret = "\nsecret: a secret only for the tests, of no value\n"
    file.write_text(policy_text() + secret + KAFKA.format("no-such-host.invalid:1", ""))
    process = subprocess.Popen(
        [sys.executable, "-m", "stream_anon", command, "-p", str(file)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        assert "plaintext-broker" in process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("client", ["_TIMED_OUT", "KafkaTimeoutError"])
def test_the_word_of_a_client_comes_with_a_remedy(
    client: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a worker said that reached no broker was this word alone."""

    def fail(arguments: object) -> int:
        raise TransportError(client)

    monkeypatch.setattr(cli, "_call", fail)
    assert cli.run_command(["run"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert client in said
    assert "stream-anon doctor" in said
