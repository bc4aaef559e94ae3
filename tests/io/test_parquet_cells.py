"""What Parquet holds beyond JSON is read as JSON would hold it."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stream_anon
from stream_anon.cli import run_command as run
from stream_anon.formats.tables import TableError, read_parts

ROWS = 60


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    columns = {
        "seen": [datetime(2026, 3, 1 + i % 10, i % 4, tzinfo=UTC) for i in range(ROWS)],
        "born": [date(1980 + i % 7, 1 + i % 3, 3) for i in range(ROWS)],
        "amount": [Decimal(i % 30) / 4 for i in range(ROWS)],
    }
    pq.write_table(pa.table(columns), "t.parquet")
    return Path("t.parquet")


def test_cells(table: Path) -> None:
    [part] = read_parts(table)
    assert part.payloads[1] == {"seen": "2026-03-02T01:00:00+00:00", "born": "1981-02-03", "amount": 0.25}


def test_from_init_to_preview(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "t.parquet"]) == 0
    capsys.readouterr()
    assert run(["preview", "t.parquet", "-p", "policy.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["published"] == ROWS
    assert set(found["loss_per_attribute"]) == {"seen", "born", "amount"}


POLICY = """
version: 1
name: t
attributes:
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [10]}}
  ill: {role: sensitive, type: number}
  note: {role: insensitive}
  home.city: {role: insensitive}
privacy: [{model: k_anonymity, k: 2}, {model: l_diversity, attribute: ill, l: 2}]
"""


def anonymized(folder: Path, table: pa.Table, name: str = "t.parquet") -> list[dict[str, Any]]:
    """What is published of a table, by `anonymize` into JSON lines."""
    (folder / "policy.yaml").write_text(POLICY)
    pq.write_table(table, folder / name)
    out = folder / "out.jsonl"
    out.unlink(missing_ok=True)
    letters = ["--dead-letters", str(folder / "bad.jsonl")]
    code = run(["anonymize", str(folder / name), "-p", str(folder / "policy.yaml"), "-o", str(out), *letters])
    return [json.loads(line) for line in out.read_text().splitlines()] if code == 0 else []


def codes(folder: Path) -> list[tuple[int, str, str]]:
    letters = [json.loads(line) for line in (folder / "bad.jsonl").read_text().splitlines()]
    return [(letter["line"], letter["code"], letter["column"]) for letter in letters]


def table_of(**columns: Any) -> pa.Table:
    count = len(next(iter(columns.values())))
    return pa.table({"age": [30 + i for i in range(count)], "ill": [float(i) for i in range(count)], **columns})


def test_infinite_numbers_are_no_values(tmp_path: Path) -> None:
    """JSON writes each of them as null: two different values in the group, and one in what is published."""
    nan, inf = math.nan, math.inf
    out = anonymized(tmp_path, table_of(ill=[inf, -inf, nan, 1.0, 2.0], note=[1, 1, 1, 1, 1]))
    assert sorted(record["ill"] for record in out) == [1.0, 2.0]
    assert codes(tmp_path) == [(1, "wrong_type", "ill"), (2, "wrong_type", "ill"), (3, "missing", "ill")]


def test_infinite_notes_are_rejected_and_nan_is_null(tmp_path: Path) -> None:
    out = anonymized(tmp_path, table_of(note=[math.inf, math.nan, 1.0, 2.0]))
    assert {record["note"] for record in out} == {None, 1.0, 2.0}
    assert codes(tmp_path) == [(1, "wrong_type", "note")]


def test_a_structure_in_a_declared_field_is_refused_as_in_json(tmp_path: Path) -> None:
    """It used to be published as null, as if nothing had been there."""
    out = anonymized(tmp_path, table_of(note=[{"ssn": "1"}, None, None]))
    assert len(out) == 2
    assert codes(tmp_path) == [(1, "wrong_type", "note")]


def test_fields_inside_structures_are_read(tmp_path: Path) -> None:
    out = anonymized(tmp_path, table_of(home=[{"city": "Ulm", "street": "x"}, None, {"city": None, "street": "y"}]))
    assert sorted(str(record["home"]["city"]) for record in out) == ["None", "None", "Ulm"]


TWICE = [
    (["note", "note"], [["mine"] * 3, ["other"] * 3]),
    (["home", "home.city"], [[{"city": "mine"}] * 3, ["other"] * 3]),
]


@pytest.mark.parametrize(("names", "cells"), TWICE, ids=["column", "structure"])
def test_columns_of_one_name_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], names: list[str], cells: list[Any]
) -> None:
    """The last of them used to win: cells of a column nobody declared were published."""
    both = pa.Table.from_arrays([*table_of(x=[1] * 3).columns[:2], *map(pa.array, cells)], ["age", "ill", *names])
    assert anonymized(tmp_path, both) == []
    assert "have the same name: rename one" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
    (tmp_path / "out.jsonl").write_text("")
    audit = ["audit", str(tmp_path / "out.jsonl"), "-p", str(tmp_path / "policy.yaml"), "--raw"]
    assert run([*audit, str(tmp_path / "t.parquet")]) != 0
    assert "the same name: rename one" in capsys.readouterr().err
    (tmp_path / "out.jsonl").unlink()


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_frames_with_columns_of_one_name_are_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    both = pa.Table.from_arrays([*table_of(x=[1] * 3).columns, pa.array(["o"] * 3)], ["age", "ill", "note", "note"])
    frame = both.to_pandas() if kind == "pandas" else both
    with pytest.raises(TableError, match="columns 3 and 4 have the same name"):
        stream_anon.anonymize(frame, stream_anon.load_policy(tmp_path / "policy.yaml"))
