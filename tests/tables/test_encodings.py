"""Text in other encodings: read as if it were UTF-8 by every command, in pieces of any size, and refused by line."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import stream_anon
from stream_anon.auditor.reading.formats import Unreadable
from stream_anon.auditor.reading.unpacked import open_file
from stream_anon.cli import run_command as run
from stream_anon.formats.packing import opened
from stream_anon.formats.text.encodings import EncodingError, known_encoding
from stream_anon.formats.text.lines import Lines

POLICY = """
version: 1
name: besuche
subject: person
secret: 0123456789abcdef0123456789abcdef
attributes:
  person: {role: identifier}
  größe:  {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [100, 220], snap: [5, 10]}}
  ort:    {role: quasi_identifier, type: category, hierarchy: {kind: flat, values: [Köln, Zürich, Århus]}}
  leiden: {role: sensitive}
privacy: [{model: k_anonymity, k: 3}]
stream: {max_delay: {records: 100}}
"""
ROWS = [
    {"person": f"p{i}", "größe": 150 + i % 40, "ort": ("Köln", "Zürich", "Århus")[i % 3], "leiden": "naïve café"}
    for i in range(60)
]
JSON_LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
CSV = ",".join(ROWS[0]) + "\n" + "".join(",".join(map(str, row.values())) + "\n" for row in ROWS)
NAMED = ["windows-1252", "latin-1", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "mac-roman"]
MARKED = ["utf-8-sig", "utf-16"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(POLICY)
    Path("plain.csv").write_text(CSV)
    Path("plain.jsonl").write_text(JSON_LINES)
    return tmp_path


def anonymized(table: str, *more: str) -> bytes:
    assert run(["anonymize", table, "-p", "policy.yaml", "-o", "out.jsonl", "--force", *more]) == 0
    return Path("out.jsonl").read_bytes()


@pytest.mark.parametrize("encoding", [*NAMED, *MARKED])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".csv.gz"])
def test_the_same_is_published(encoding: str, suffix: str) -> None:
    text = CSV if ".csv" in suffix else JSON_LINES if suffix == ".jsonl" else json.dumps(ROWS, ensure_ascii=False)
    coded = text.encode(encoding)
    Path(f"t{suffix}").write_bytes(gzip.compress(coded) if suffix.endswith("gz") else coded)
    Path(f"p{suffix}").write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    more = ["--encoding", encoding] if encoding in NAMED else []
    assert anonymized(f"t{suffix}", *more) == anonymized(f"p{suffix}")
    assert run(["audit", "out.jsonl", "-p", "policy.yaml", "--raw", f"t{suffix}", *more]) == 0


COMMANDS = [
    "init t.csv -o made.yaml",
    "check policy.yaml --data t.csv",
    "preview t.csv -p policy.yaml",
    "compare t.csv -p policy.yaml --k 3 --max-delay 20 --algorithm cail",
    "replay t.csv -p policy.yaml -o replayed.jsonl --rate 10",
    "attack out.jsonl --raw t.csv -p policy.yaml --isolation 1 --minimality 1",
]


@pytest.mark.parametrize("command", COMMANDS, ids=[command.split()[0] for command in COMMANDS])
def test_every_command_reads_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    anonymized("plain.csv")
    Path("t.csv").write_bytes(CSV.encode("windows-1252"))
    assert run([*command.split(), "--encoding", "windows-1252"]) == 0
    told = capsys.readouterr().err
    if "next: stream-anon" in told and " t.csv" in told.split("next:")[-1]:
        assert "t.csv --encoding windows-1252" in " ".join(told.split())
    assert run([*command.split(), *(["--force"] if "init" in command else [])]) != 0


def test_a_pipe_reads_it(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    published = []
    for name, content, more in (
        ("plain.csv", CSV.encode(), []),
        ("named.csv", CSV.encode("windows-1252"), ["--encoding", "windows-1252"]),
        ("marked.csv", CSV.encode("utf-16"), []),
    ):
        Path(name).write_bytes(content)
        with Path(name).open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert run(["pipe", "-p", "policy.yaml", "--csv", "--quiet", *more]) == 0
        published.append(capfdbinary.readouterr().out)
    assert published[0].count(b"\n") == len(ROWS)
    assert published[1:] == published[:1] * 2


def test_from_python() -> None:
    Path("t.csv").write_bytes(CSV.encode("windows-1252"))
    policy = stream_anon.load_policy("policy.yaml")
    result = stream_anon.anonymize("t.csv", policy, encoding="windows-1252")
    assert result.published == len(ROWS)
    assert stream_anon.audit(result.table, policy, raw="t.csv", encoding="windows-1252").passed
    assert "größe" in stream_anon.propose("t.csv", encoding="windows-1252").text


def _all(path: Path, encoding: str) -> None:
    with opened(path) as file:
        lines = Lines(file, keep_blank=True, encoding=encoding, name=str(path))
        while not lines.ended:
            lines.read(None)


def _auditors(path: Path, encoding: str) -> None:
    with open_file(path, encoding) as file:
        file.read()


WRONG = [
    # remark, encoding, bytes, the line that is told
    ("a byte nobody uses", "windows-1252", b"a\nb\nc\x81\nd\n", 3),
    ("half a letter at the end", "utf-16-le", "a\nb\n".encode("utf-16-le") + b"x", 3),
    ("half a pair", "utf-16-be", "a\n".encode("utf-16-be") + b"\xd8\x00\x00a", 2),
    ("a letter of no one", "shift_jis", b"\n" * 70_000 + b"\xfd\xfd\n", 70_001),
    ("no ASCII", "ascii", b"a\n\xe9\n", 2),
]


@pytest.mark.parametrize("read", [_all, _auditors])
@pytest.mark.parametrize(("encoding", "content", "line"), [c[1:] for c in WRONG], ids=[c[0] for c in WRONG])
def test_what_is_none_is_told_by_line(
    encoding: str, content: bytes, line: int, read: Callable[[Path, str], None]
) -> None:
    Path("t.csv").write_bytes(content)
    with pytest.raises((EncodingError, Unreadable), match=rf"t\.csv: line {line} is not text in {encoding}: name its"):
        read(Path("t.csv"), encoding)


class Pieces:
    """Text that arrives a few bytes at a time."""

    def __init__(self, text: bytes, size: int) -> None:
        self._file, self._size = io.BytesIO(text), size

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(min(size, self._size))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1 << 16])
@pytest.mark.parametrize("encoding", [*NAMED, *MARKED, "utf-8", None])
def test_pieces_of_any_size(encoding: str | None, size: int) -> None:
    for text in ("", "é", "a\n", "größe\n𝄞\nx"):
        if encoding in ("windows-1252", "latin-1", "mac-roman"):
            text = text.replace("𝄞", "è")
        named = None if encoding in MARKED else encoding
        lines, read = Lines(Pieces(text.encode(encoding or "utf-8"), size), encoding=named), []
        while not lines.ended:
            read += [line.decode() for _, line in lines.read(None) if isinstance(line, bytes)]
        assert read == text.splitlines(), text


def test_names() -> None:
    assert [known_encoding(name) for name in (None, "UTF8", "cp1252", "Latin-1")] == [
        None,
        None,
        "cp1252",
        "iso8859-1",
    ]
    for name in ("rot13", "base64", "nothing", "", "a\0b"):
        with pytest.raises(EncodingError, match="no encoding is called"):
            known_encoding(name)
