"""JSON arrays and tables with tabs: what other programs export, read and written by every command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_any_bytes import refusal_of
from test_one_verdict import POLICY

import stream_anon
from stream_anon.auditor.raw.original import raw_columns
from stream_anon.auditor.reading.formats import Unreadable
from stream_anon.cli import run_command as run
from stream_anon.core.decode import Decoder
from stream_anon.formats.tables import TableError, read_parts

RECORDS = [
    {"patient": f"p{i}", "year": 1950 + i, "zip": f"021{i:02}", "diagnosis": ["flu", "ulcer"][i % 2], "ward": "A\tB"}
    for i in range(24)
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(POLICY)
    return tmp_path


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\n\n  "])
def test_an_array(place: Path, indent: int | None, mark: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.json").write_bytes(mark + json.dumps([*RECORDS, 7], indent=indent).encode())
    assert run(["init", "t.json", "-o", "new.yaml"]) == 0
    assert run(["anonymize", "t.json", "-p", "policy.yaml", "-o", "o.jsonl"]) == 0
    assert "line 25: rejected: not_object" in capsys.readouterr().err
    published = [json.loads(line) for line in Path("o.jsonl").read_text().splitlines()]
    assert len(published) == 24
    Path("o.json").write_text(json.dumps(published))
    assert run(["audit", "o.json", "-p", "policy.yaml", "--raw", "t.json", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["records"], found["raw"]["unread"]) == (24, [{"line": 25, "code": "not_object"}])


def test_lines_in_a_file_of_arrays(place: Path) -> None:
    """A file named .json may hold lines, too, and is written with lines."""
    Path("t.json").write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    assert run(["anonymize", "t.json", "-p", "policy.yaml", "-o", "o.json", "--max-rejected", "0"]) == 0
    assert run(["audit", "o.json", "-p", "policy.yaml", "--raw", "t.json"]) == 0


PIECES = [b'{"a": 1}', b"[1]", b"null", b'"x"', b"{", b"\xff", b"1e999", b'{"b": 1e999}', b" "]
ITEMS = st.lists(st.sampled_from(PIECES))


@settings(max_examples=200, deadline=None)
@given(ITEMS.map(lambda items: b"[" + b",".join(items) + b"]") | ITEMS.map(b"\n".join))
@example(b"[]")
@example(b"[")
def test_both_readers_agree(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        path.write_bytes(data)
        try:
            bad: Any = [(one.line, one.code) for _, some in raw_columns(path) for one in some]
        except Unreadable:
            with pytest.raises(TableError, match="begins as a JSON array"):
                list(read_parts(path, 3))
            return
        decoder, parts = Decoder({}), list(read_parts(path, 3))
    rows = [pair for part in parts for pair in zip(part.numbers.tolist(), part.payloads, strict=True)]
    refused = [(number, refusal_of(decoder, row)) for number, row in rows]
    assert [(number, code) for number, code in refused if code] == bad


EMPTY = [
    # remark, type, hierarchy, two values
    ("codes", "category", {"kind": "prefix", "length": 3}, ("021", "022")),
    ("a list", "category", {"kind": "flat", "values": ["a", "b"]}, ("a", "b")),
    ("a tree", "category", {"kind": "tree", "tree": {"any": ["a", "b"]}}, ("a", "b")),
    ("dates", "timestamp", {"kind": "calendar", "levels": ["day", "year"]}, ("2026-01-01", "2026-03-08")),
]


@pytest.mark.parametrize(("kind", "hierarchy", "values"), [case[1:] for case in EMPTY], ids=[case[0] for case in EMPTY])
@pytest.mark.parametrize("allowed", [{"missing": "leaf", "unknown": "leaf"}, {}])
def test_empty_text_is_no_value(kind: str, hierarchy: Any, values: tuple[str, str], allowed: dict[str, str]) -> None:
    """In JSON as in CSV, for the run as for the auditor."""
    field = {"role": "quasi_identifier", "type": kind, "hierarchy": hierarchy} | allowed
    policy = stream_anon.Policy.model_validate(
        {"version": 1, "name": "e", "attributes": {"x": field}, "privacy": [{"model": "k_anonymity", "k": 2}]}
    )
    raw = [{"x": value} for value in (*values, "", "", None, None, "odd", "odd")]
    result = stream_anon.anonymize(raw, policy, algorithm="mondrian")
    if allowed:
        assert sum(record["x"] == "(missing)" for record in result.table) == 4
    else:
        assert result.rejected == {"missing": 4, "unknown": 2}
    assert stream_anon.audit(result.table, policy, raw=raw).findings == ()


def test_init_leaves_empty_text_out(place: Path) -> None:
    cities = ["Bigtown"] * 180 + [f"Village {i}" for i in range(15)] + [""] * 5
    rows = [{"city": city, "age": i % 50} for i, city in enumerate(cities)]
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["init", "t.jsonl", "-o", "new.yaml"]) == 0
    assert "missing: leaf" in Path("new.yaml").read_text()


def test_tabs(place: Path) -> None:
    with Path("t.tsv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(RECORDS[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(RECORDS)
    assert run(["anonymize", "t.tsv", "-p", "policy.yaml", "-o", "o.tsv", "--max-rejected", "0"]) == 0
    with Path("o.tsv").open(newline="") as file:
        found = list(csv.DictReader(file, delimiter="\t"))
    assert [row["ward"] for row in found] == ["A\tB"] * 24
    assert run(["audit", "o.tsv", "-p", "policy.yaml", "--raw", "t.tsv"]) == 0
