"""Forty wrong inputs: each is told in at most six lines, with what is wrong and what to do about it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from stream_anon.cli import run_command as run
from stream_anon.demo import admissions, policy_text

KAFKA = (
    "secret: ${WRONG_INPUTS_SECRET}\n"
    'kafka: {bootstrap: "127.0.0.1:1", group: g, input: i, output: o, options: {client.id: x}}\n'
)
GOOD = ["-p", "good.yaml"]
POLICIES = [
    # remark, the right words, the wrong ones, what is told
    ("a key", "role:", "rol:", 'write "role" for "rol"'),
    ("a role", "quasi_identifier", "quasi", 'did you mean "quasi_identifier"?'),
    ("a small k", "k: 5", "k: 0", "must be at least 2"),
    ("a k in words", "k: 5", "k: five", "must be a whole number"),
    ("a model", "k_anonymity", "k_anonimity", 'did you mean "k_anonymity"?'),
    ("an attribute", "attribute: diagnosis", "attribute: diagnos", 'did you mean "diagnosis"?'),
    ("a subject", "subject: patient_id", "subject: patientid", 'did you mean "patient_id"?'),
    ("a duration", "time: 3s", "time: 3 parsecs", "500ms, 5s, 2m, 1h, 1d"),
    ("a bracket", "attributes:", "attributes: [", "close it with ]"),
    ("a version", "version: 1", "version: 7", "must be one of: 1"),
    ("a hierarchy", "kind: prefix", "kind: prefx", 'did you mean "prefix"?'),
    ("a word twice", "subject: patient_id", "subject: patient_id\nsubject: name", "subject"),
    ("l without a number", "l: 3", "l: many", '"l" must be a number'),
    ("a range upside down", "[1930, 2026]", "[2026, 1930]", "range"),
    ("no snap", ", snap: [1, 5, 10]", "", 'add "snap: [5, 10]"'),
    ("a topic twice", "", KAFKA.replace("output: o", "output: i"), "name another topic"),
    ("an option", "", KAFKA.replace("client.id", "sesion.timeout.ms"), 'did you mean "session.timeout.ms"?'),
    ("a decided option", "", KAFKA.replace("client.id", "isolation.level"), "leave it out"),
    ("a short secret", "", KAFKA.replace("${WRONG_INPUTS_SECRET}", "short"), "secret"),
    (
        "a secret that is not set",
        "",
        KAFKA.replace("WRONG_INPUTS", "NOBODY_SET_THIS"),
        "with the one in use, or a new one",
    ),
    ("a secret of digits", "", KAFKA.replace("WRONG_INPUTS", "WRONG_DIGITS"), "put quotes around its ${NAME}"),
    (
        "a table that is not there",
        "{kind: flat, values: [female, male, other]}",
        "{kind: csv, path: no.csv}",
        "with lines, as docs",
    ),
]
COMMANDS = [
    # remark, the command, what is told
    ("no policy", ["check", "nothing.yaml"], "stream-anon init DATA proposes one"),
    ("an empty policy", ["check", "empty.csv"], "stream-anon init DATA proposes one"),
    ("a folder as policy", ["check", "."], "name the policy's file"),
    ("no data to check", ["check", "good.yaml", "--data", "nothing.csv"], "is the name right?"),
    ("no table", ["init", "nothing.csv"], "is the name right?"),
    ("an empty table", ["init", "empty.csv"], "give a table"),
    ("no line of names", ["init", "noheader.csv"], "put a line with names before it"),
    ("no Parquet", ["init", "bin.parquet"], "save it as one"),
    ("another encoding", ["init", "utf16.csv"], "--encoding utf-16-le"),
    ("an old encoding", ["check", "good.yaml", "--data", "latin.csv"], "--encoding windows-1252"),
    ("no such encoding", ["init", "data.csv", "--encoding", "utf-99"], 'did you mean "utf-8"?'),
    ("the wrong encoding", ["init", "latin.csv", "--encoding", "utf-16"], "latin.csv: line 1 is not text in utf-16"),
    ("an encoding of Parquet", ["init", "bin.parquet", "--encoding", "cp1252"], "leave it out"),
    ("an encoding of a topic", ["init", "kafka:t", "--encoding", "cp1252"], "leave it out"),
    ("a topic of no broker", ["init", "kafka:t", "--bootstrap", "127.0.0.1:1"], "--bootstrap HOST:PORT"),
    ("another kind of file", ["init", "data.txt"], "its name must end with one of"),
    ("a policy as table", ["init", "good.yaml"], "its name must end with one of"),
    ("an output of no kind", ["anonymize", "data.jsonl", *GOOD, "-o", "out.xyz"], "its name must end with one of"),
    ("the input as output", ["anonymize", "data.jsonl", *GOOD, "-o", "data.jsonl"], "name another file"),
    ("an algorithm", ["anonymize", "data.jsonl", *GOOD, "-o", "o.jsonl", "--algorithm", "swep"], 'mean "sweep"?'),
    ("no folder", ["anonymize", "data.jsonl", *GOOD, "-o", "no/o.jsonl"], "create it, or name another"),
    ("an option without a value", ["anonymize", "data.jsonl", *GOOD, "-o", "o.jsonl", "--set", "x"], "key=value"),
    ("a preview without a policy", ["preview", "data.jsonl"], "Missing option '--policy'"),
    ("nothing to audit", ["audit", "nothing.jsonl"], "is the name right?"),
    ("a followed file", ["audit", "data.jsonl", "--follow"], "kafka:TOPIC"),
    ("raw without a policy", ["audit", "data.jsonl", "--raw", "data.jsonl"], "pass -p"),
    ("a topic without a broker", ["audit", "kafka:t"], "pass --bootstrap HOST:PORT, or -p POLICY"),
    ("a worker without Kafka", ["run", *GOOD], "add kafka: {bootstrap: HOST:PORT, group:"),
    ("no worker", ["run", "-p", "kafka.yaml", "--workers", "0"], "greater than or equal to 1"),
    ("a rate", ["demo", "--rate", "-1"], "greater than or equal to 1"),
    ("a policy for the demo on Kafka", ["demo", "--kafka", *GOOD], "stream-anon broker -p good.yaml"),
    ("no raw records", ["attack", "data.jsonl", "--raw", "nothing.jsonl", *GOOD], "is the name right?"),
    ("a page that is there", ["audit", "data.jsonl", "--html", "data.csv"], "--force"),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("WRONG_INPUTS_SECRET", "0123456789abcdef0123456789abcdef")
    monkeypatch.setenv("WRONG_DIGITS_SECRET", "12345678901234567890123456789012")
    Path("good.yaml").write_text(policy_text())
    Path("kafka.yaml").write_text(policy_text() + KAFKA)
    Path("data.jsonl").write_bytes(b"\n".join(islice(admissions(3), 20)) + b"\n")
    Path("data.csv").write_text("age,sex\n1,f\n2,m\n")
    Path("utf16.csv").write_bytes("name,age\nJose,3\n".encode("utf-16-le"))
    Path("latin.csv").write_bytes("größe,age\n170,3\n".encode("latin-1"))
    Path("empty.csv").write_text("")
    Path("noheader.csv").write_text("1,2\n3,4\n")
    Path("bin.parquet").write_bytes(b"no such thing")
    return tmp_path


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run(arguments) != 0
    return [line for line in capsys.readouterr().err.splitlines() if line.strip()]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("right", "wrong", "remedy"), [c[1:] for c in POLICIES], ids=[c[0] for c in POLICIES])
def test_a_wrong_policy(right: str, wrong: str, remedy: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = policy_text()
    assert right in text
    Path("p.yaml").write_text(text.replace(right, wrong, 1) if right else text + wrong)
    lines = told(["check", "p.yaml"], capsys)
    assert remedy in "\n".join(lines)
    assert len(lines) <= 6, lines


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("command", "remedy"), [c[1:] for c in COMMANDS], ids=[c[0] for c in COMMANDS])
def test_a_wrong_command(command: list[str], remedy: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(command, capsys)
    assert remedy in "\n".join(lines)
    assert len(lines) <= 6, lines


def test_there_are_forty() -> None:
    assert len(POLICIES) + len(COMMANDS) >= 40
