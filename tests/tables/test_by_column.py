"""Tables read and written by column: every verdict and every value is that of the way by row."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import stream_anon
from stream_anon.core.decode import _TYPES, Coded, Columns, Decoder
from stream_anon.core.publish import encode_lines
from stream_anon.formats.arrow.csv_blocks import plain_rows
from stream_anon.formats.arrow.rows import ArrowRows
from stream_anon.formats.csv_records import CsvRecords
from stream_anon.formats.csv_table import CsvWriter, _cell
from stream_anon.formats.format import flat
from stream_anon.formats.frames import payload_of, records_of, rows_of
from stream_anon.formats.parquet import ParquetWriter

ARRAYS = {
    "text": pa.array(["", "39", "x", None, "1e3", "null", " 7", "true", "39"]),
    "names": pa.array([*(f"p{i}" for i in range(1000)), None, "", "p7"]),
    "large text": pa.array(["a", None, ""], pa.large_string()),
    "coded text": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "integers": pa.array([1, None, 2**62, 1, -1]),
    "unsigned": pa.array([1, 2**64 - 1], pa.uint64()),
    "booleans": pa.array([True, None, False]),
    "floats": pa.array([1.0, 0.5, -0.0, 0.0, float("nan"), None, float("inf")], from_pandas=False),
    "short floats": pa.array([0.1, None], pa.float32()),
    "dates": pa.array([date(2020, 2, 3), None]),
    "instants": pa.array([datetime(2020, 2, 3, 4, 5, tzinfo=UTC), None]),
    "decimals": pa.array([Decimal("1.50"), None]),
    "nothing": pa.nulls(3),
    "lists": pa.array([[1], None]),
    "objects": pa.array([{"b": 1}, None]),
    "bytes": pa.array([b"x", None]),
}


def told(found: Columns) -> tuple[Any, ...]:
    """Everything that a reader says, values by their text: 1, 1.0 and true are three."""
    values = {name: list(map(repr, column)) for name, column in found.values.items()}
    return found.kept.tolist(), values, found.refused


@pytest.mark.parametrize("kind", _TYPES)
@pytest.mark.parametrize("name", ARRAYS)
def test_a_column_is_read_as_its_rows_are(name: str, kind: str) -> None:
    decoder, column = Decoder({"a": kind, "gone": "any", "c": "integer"}), ARRAYS[name]
    other = pa.array(list(range(len(column))))
    batch = pa.record_batch({"a": column, "c": other})
    assert told(decoder.columns(ArrowRows(batch))) == told(decoder.columns(list(ArrowRows(batch))))
    table = pa.table(batch)
    [rows] = rows_of(table)
    assert told(decoder.columns(rows)) == told(decoder.columns(list(map(payload_of, records_of(table)))))


def test_plain_columns_are_read_by_column() -> None:
    for name in ("text", "integers", "floats", "booleans"):
        column = ArrowRows(pa.record_batch({"a": ARRAYS[name]})).column("a")
        assert isinstance(column, Coded)
        assert len(column.values) <= len(column)
    assert ArrowRows(pa.record_batch({"a": ARRAYS["objects"]})).column("a.b") is None


FRAMES: dict[str, list[Any]] = {
    "text": ["a", None, "b", "39"],
    "numbers and text": [1, "a", 2.5, None],
    "whole and broken": [1, 2.5, None, 3],
    "integers": [1, 2, 3, 1],
    "floats": [1.0, float("nan"), 2.5, -0.0],
    "booleans": [True, False, True, True],
    "instants": [datetime(2020, 1, 2, tzinfo=UTC)] * 4,
}


@pytest.mark.parametrize("kind", ["category", "number", "any", "identifier"])
@pytest.mark.parametrize("name", FRAMES)
def test_frames_are_read_as_their_records_are(name: str, kind: str) -> None:
    decoder = Decoder({"a": kind, "b": "integer", "d.e": "any"})
    frames: list[Any] = [pandas.DataFrame({"a": FRAMES[name], "b": [1, 2, 3, 4], "d.e": [1, 2, 3, 4]})]
    if name not in ("numbers and text", "whole and broken"):
        frames.append(polars.DataFrame({"a": FRAMES[name], "b": [1, 2, 3, 4]}))
    for frame in frames:
        [rows] = rows_of(frame)
        assert told(decoder.columns(rows)) == told(decoder.columns(list(map(payload_of, records_of(frame)))))


CELL = st.text(st.sampled_from('ab,;"\r\t \x00\xe9\u2028\ufeff1'), max_size=4)


def test_frames_with_numbers_for_names_and_half_characters() -> None:
    """A frame without names numbers its columns; a policy names them by text."""
    for column in (["x", "y", None], ["\ud800", "y", None]):
        table = pandas.DataFrame({0: pandas.Series(column, dtype=object), "b": [1, 2, 3]})
        decoder = Decoder({"0": "any", "b": "integer"})
        [rows] = rows_of(table)
        found = told(decoder.columns(rows))
        assert found == told(decoder.columns(list(map(payload_of, records_of(table)))))
        assert "'y'" in found[1]["0"]


@settings(max_examples=300, deadline=None)
@given(st.lists(CELL.map(str.encode) | st.sampled_from([b"1,2", b"a,b", b"", b"\xff,1", b'"a",b']), max_size=5))
@example([b"\xef\xbb\xbfa,b"])
@example([b" ,", b","])
def test_plain_lines_are_what_the_strict_reader_says(lines: list[bytes]) -> None:
    rows = plain_rows(lines, ["one", "two"], ",")
    if rows is None:
        return
    strict = CsvRecords("t")
    strict.feed([(1, b"one,two")], ended=False)
    expected = strict.feed(list(enumerate(lines, 2)), ended=True)
    assert list(rows) == [record for _, record in expected]


def test_plain_lines_are_found() -> None:
    rows = plain_rows([b"1,a", b"2,\xc3\xa9"], ["one", "two"], ",")
    assert rows is not None
    assert list(rows) == [{"one": "1", "two": "a"}, {"one": "2", "two": "\u00e9"}]


POLICY = {
    "version": 1,
    "name": "people",
    "attributes": {
        "age": {
            "role": "quasi_identifier",
            "type": "integer",
            "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [5, 20]},
            "missing": "leaf",
        },
        "sex": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "flat", "values": ["f", "m"]}},
        "illness": {"role": "sensitive"},
        "note": {"role": "insensitive", "list": True},
    },
    "privacy": [{"model": "k_anonymity", "k": 3}],
}
NOTES: list[Any] = ["=1+1", None, True, 7, "a,b", [1, "x"], 0.5]


def some_groups() -> list[Any]:
    rng = np.random.default_rng(0)
    rows = [
        {
            "age": int(rng.integers(0, 90)) if i % 9 else None,
            "sex": "fm"[i % 2],
            "illness": "flu",
            "note": NOTES[i % len(NOTES)],
        }
        for i in range(60)
    ]
    return stream_anon.anonymize(rows, stream_anon.Policy.model_validate(POLICY), algorithm="mondrian").groups


def test_csv_is_written_as_its_records() -> None:
    groups, file = some_groups(), BytesIO()
    writer = CsvWriter(file)
    writer.write(groups[:2])
    writer.write(groups[2:])
    writer.close()
    lines = list(csv.DictReader(file.getvalue().decode().splitlines()))
    records = [{k: _cell(v, True) for k, v in flat(record).items()} for group in groups for record in group.records()]
    names = ("age", "sex", "illness", "note", *(f"_anon.{fact}" for fact in next(groups[0].records())["_anon"]))
    assert [tuple(line) for line in lines[:1]] == [names]
    assert lines == [{name: str(record.get(name, "")) for name in names} for record in records]


def test_json_does_not_depend_on_what_is_written_together() -> None:
    groups = some_groups()
    one_by_one = b"".join(encode_lines([group]) for group in groups)
    assert encode_lines(groups) == one_by_one
    assert encode_lines(groups[::-1]) == b"".join(encode_lines([group]) for group in groups[::-1])
    records = [json.loads(line) for line in one_by_one.splitlines()]
    assert records == [record for group in groups for record in group.records()]


def test_arrow_tables_and_parquet_hold_the_same_records(tmp_path: Path) -> None:
    table = pa.table(
        {
            "age": list(range(40)),
            "sex": ["f", "m"] * 20,
            "illness": ["flu"] * 40,
            "note": [f"n{i}" for i in range(40)],
            "name": ["x"] * 40,
        }
    )
    result = stream_anon.anonymize(table, stream_anon.Policy.model_validate(POLICY), algorithm="mondrian")
    records = [record for group in result.groups for record in group.records()]
    assert result.table.to_pylist() == records
    as_frame = stream_anon.anonymize(polars.from_arrow(table), stream_anon.Policy.model_validate(POLICY))
    assert isinstance(as_frame.table, polars.DataFrame)
    file = BytesIO()
    writer = ParquetWriter(file)
    writer.write(result.groups)
    writer.close()
    assert pa.parquet.read_table(BytesIO(file.getvalue())).to_pylist() == records
