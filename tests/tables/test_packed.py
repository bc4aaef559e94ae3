"""Packed tables (gzip, zstd), arrays and object files: read and written by every command, and hostile ones refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream_anon.auditor.reading.formats import Unreadable
from stream_anon.auditor.reading.json_records import json_records
from stream_anon.cli import run_command
from stream_anon.formats import json_array
from stream_anon.formats.format import TableError
from stream_anon.formats.packing import zstd
from stream_anon.formats.tables import format_of, read_parts

POLICY = """
version: 1
name: visits
subject: patient
secret: 0123456789abcdef0123456789abcdef
attributes:
  patient:   {role: identifier}
  year:      {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [1920, 2026], snap: [5, 10]}}
  zip:       {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 5}}
  diagnosis: {role: sensitive}
  ward:      {role: insensitive}
privacy: [{model: k_anonymity, k: 3}, {model: l_diversity, attribute: diagnosis, l: 2}]
stream: {max_delay: {records: 1000}}
"""
ROWS = [
    {
        "patient": f"p{i}",
        "year": 1950 + i % 40,
        "zip": f"021{i % 30:02}",
        "diagnosis": ("flu", "ulcer", "asthma")[i % 3],
        "ward": "=A" if i % 2 else "B",
    }
    for i in range(300)
]


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def as_avro(rows: list[dict[str, Any]]) -> bytes:
    kinds = {str: "string", int: "long"}
    fields = [{"name": name, "type": kinds[type(value)]} for name, value in rows[0].items()]
    file = io.BytesIO()
    fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, rows, codec="deflate")
    return file.getvalue()


def array(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps(rows, indent=1).encode()


MAKE: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    ".jsonl": as_lines,
    ".json": array,
    ".csv": as_csv,
    ".parquet": as_parquet,
    ".avro": as_avro,
}


def pack(suffix: str, data: bytes) -> bytes:
    return {".gz": gzip.compress, ".zst": zstd().compress}[suffix](data) if suffix else data


NAMES = [".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".csv.gz", ".csv.zst", ".parquet", ".avro"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def table(name: str, rows: list[dict[str, Any]] = ROWS) -> Path:
    path = Path(name)
    inner, _, packing = name.removeprefix(path.name.split(".")[0]).lstrip(".").partition(".")
    path.write_bytes(pack(f".{packing}" if packing else "", MAKE[f".{inner}"](rows)))
    return path


def published(path: str) -> list[Any]:
    """The groups of an output, told by what is the same in each format."""
    found = [payload for part in read_parts(Path(path)) for payload in part.payloads]
    rows = [json.loads(row) if isinstance(row, bytes) else row for row in found]
    return [row["_anon.group"] if "_anon.group" in row else row["_anon"]["group"] for row in rows]


@pytest.mark.parametrize("command", ["anonymize", "replay"])
def test_one_table_in_every_form_gives_the_same_groups(folder: Path, command: str) -> None:
    table("raw.jsonl")
    more = ["-p", "policy.yaml", *(["--rate", "100"] if command == "replay" else [])]
    assert run_command([command, "raw.jsonl", *more, "-o", "plain.jsonl"]) == 0
    groups = published("plain.jsonl")
    assert len(groups) == len(ROWS)
    for number, name in enumerate(NAMES):
        raw, out = table(f"raw{name}"), f"out{number}{NAMES[-1 - number]}"
        assert run_command([command, str(raw), *more, "-o", out]) == 0
        assert published(out) == groups
        if command == "anonymize":
            assert run_command(["audit", out, "-p", "policy.yaml", "--raw", str(raw)]) == 0


def test_commands_that_look_at_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proposed = []
    for name in (".csv", ".csv.gz", ".csv.zst"):
        raw = str(table(f"raw{name}"))
        assert run_command(["init", raw, "-o", f"made{name}.yaml", "--json"]) == 0
        proposed.append(json.loads(capsys.readouterr().out)["columns"])
        assert "name: raw\n" in Path(f"made{name}.yaml").read_text()
        assert run_command(["check", "policy.yaml", "--data", raw]) == 0
        assert run_command(["preview", raw, "-p", "policy.yaml"]) == 0
    assert run_command(["compare", "raw.csv.gz", "-p", "policy.yaml", "--limit", "200"]) == 0
    assert proposed[0] == proposed[1] == proposed[2]


@pytest.mark.parametrize("packing", [".gz", ".zst"])
@pytest.mark.parametrize("name", [".jsonl", ".csv", ".json"])
def test_what_is_cut_off_or_damaged_is_told_with_its_place(
    folder: Path, name: str, packing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = pack(packing, MAKE[name]([row | {"ward": f"w{i * 7919 % 5003}"} for i, row in enumerate(ROWS * 40)]))
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    path = Path(f"raw{name}{packing}")
    for broken in (whole[: len(whole) // 2], whole[:-1], bytes(flipped), whole + b"more", b"plain text\n", b""):
        path.write_bytes(broken)
        for arguments in (
            ["anonymize", str(path), "-p", "policy.yaml", "-o", "out.jsonl"],
            ["replay", str(path), "-p", "policy.yaml", "-o", "out.jsonl", "--rate", "9"],
        ):
            assert run_command(arguments) == 1
            said = " ".join(capsys.readouterr().err.split())
            assert str(path) in said
            assert "cut off" in said or "damaged" in said or "begins as" in said
            assert "after line" in said or "bytes" in said or "empty" in said
            assert not Path("out.jsonl").exists()
            Path("out.jsonl.partial").unlink(missing_ok=True)
        with pytest.raises(Unreadable, match=r"raw.*(cut off|damaged|empty|begins as)"):
            list(json_records(path) if name != ".csv" else _auditors(path))


def _auditors(path: Path) -> Any:
    from stream_anon.auditor.reading.formats import format_of as auditors

    kind = auditors(path)
    assert kind is not None
    return kind.columns(path)


@pytest.mark.parametrize("packing", [".gz", ".zst"])
@pytest.mark.parametrize("name", [".jsonl", ".csv"])
def test_a_line_without_end_is_not_held(folder: Path, name: str, packing: str) -> None:
    path = Path(f"bomb{name}{packing}")
    data = b"\0" * (1 << 26)
    good = MAKE[name](ROWS[:2])
    path.write_bytes(pack(packing, good) + pack(packing, data) + pack(packing, b"\n" + good.splitlines()[-1]))
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    try:
        payloads = [payload for part in read_parts(path) for payload in part.payloads]
        read = [1 for line in json_records(path)] if name == ".jsonl" else [1 for _ in _auditors(path)]
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
    assert len(payloads) == 4
    assert [str(payload) for payload in payloads if isinstance(payload, str)] == ["too_large"]
    assert read


def test_an_array_without_end_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_array, "LARGEST_ARRAY", 1 << 20)
    path = Path("bomb.json.gz")
    path.write_bytes(gzip.compress(b"[" + b" " * (1 << 22) + b"]"))
    with pytest.raises(TableError, match=r"bomb.json.gz: an array of more than 1 MiB"):
        list(read_parts(path))


def test_what_is_packed_inside_is_not_packed_again(folder: Path) -> None:
    for name in ("a.parquet.gz", "a.avro.zst"):
        with pytest.raises(TableError, match="packed inside"):
            format_of(Path(name))
    with pytest.raises(TableError, match="unknown kind"):
        format_of(Path("a.gz"))


def test_pipe_writes_csv_that_no_spreadsheet_runs(folder: Path) -> None:
    import subprocess
    import sys

    raw = table("raw.csv").read_bytes()
    for more, mark in (([], "'=A"), (["--no-quote-formulas"], "=A")):
        done = subprocess.run(
            [sys.executable, "-m", "stream_anon", "pipe", "-p", "policy.yaml", "--csv", "--to", "csv", *more],
            input=raw,
            capture_output=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
        assert len(rows) == len(ROWS)
        assert {row["ward"] for row in rows} == {mark, "B"}
        Path("out.csv").write_bytes(done.stdout)
        if not more:
            assert run_command(["audit", "out.csv", "-p", "policy.yaml", "--raw", "raw.csv"]) == 0
