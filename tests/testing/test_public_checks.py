"""The public checks accept every part of this package."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stream_anon.core.hierarchy import HIERARCHIES
from stream_anon.core.privacy import MODELS
from stream_anon.formats.avro_file import AvroFile
from stream_anon.formats.csv_table import CsvTable, TsvTable
from stream_anon.formats.format import Format
from stream_anon.formats.json_array import JsonFile
from stream_anon.formats.json_lines import JsonLines
from stream_anon.formats.parquet import Parquet
from stream_anon.formats.tables import known_formats
from stream_anon.testing import check_format, check_hierarchy, check_model
from stream_anon.testing.checks.models import VALUES, Definition, Rows, holders_of

Records = Sequence[Mapping[str, Any]]


def people(rows: Rows) -> int:
    return len({person for person, value in rows if value is not None})


def largest(rows: Rows) -> float:
    return max(map(len, holders_of(rows).values())) / people(rows)


ON = {"attribute": "illness"}
GUARDED = {"guarding_node": "guard"}
CASES: list[tuple[dict[str, Any], Definition | None, dict[str, Any]]] = [
    # settings, definition, settings of the attribute
    ({"model": "k_anonymity", "k": 4}, lambda rows: people(rows) >= 4, {}),
    ({"model": "l_diversity", "l": 3} | ON, lambda rows: len(holders_of(rows)) >= 3, {}),
    ({"model": "l_diversity", "l": 2, "variant": "entropy"} | ON, None, {}),
    ({"model": "l_diversity", "l": 2, "variant": "recursive", "c": 1.5} | ON, None, {}),
    (
        {"model": "lc_anonymity", "l": 2, "c": 0.5} | ON,
        lambda rows: len(holders_of(rows)) >= 2 and largest(rows) <= 0.5 + 1e-9,
        {},
    ),
    (
        {"model": "alpha_k", "k": 3, "alpha": 0.5} | ON,
        lambda rows: people(rows) >= 3 and largest(rows) <= 0.5 + 1e-9,
        {},
    ),
    ({"model": "alpha_k", "k": 3, "estimate": {"after": 50}} | ON, None, {"psf": "wish"}),
    ({"model": "t_closeness", "t": 0.4, "estimate": {"after": 50}} | ON, None, {}),
    ({"model": "t_closeness", "t": 0.3, "distance": "ordered", "estimate": {"after": 50}} | ON, None, {}),
    ({"model": "t_closeness", "t": 0.4, "reference": dict.fromkeys(VALUES, 1)} | ON, None, {}),
    ({"model": "t_closeness", "t": 0.3, "distance": "ordered", "reference": dict.fromkeys(VALUES, 1)} | ON, None, {}),
    ({"model": "guarding_node", "p": 0.5} | ON, None, GUARDED),
]


@pytest.mark.parametrize(("data", "definition", "attribute"), CASES)
def test_models(data: dict[str, Any], definition: Definition | None, attribute: dict[str, Any]) -> None:
    check_model(MODELS[data["model"]].model_validate(data), definition, attribute=attribute)


def test_every_model_is_checked() -> None:
    assert {case[0]["model"] for case in CASES} == set(MODELS.words)


KINDS: list[tuple[dict[str, Any], str, list[Any], list[Any]]] = [
    # settings, type, values, values it does not know
    ({"kind": "interval", "range": [0, 90], "snap": [5, 10]}, "integer", [*range(0, 91, 9)], [91, -1]),
    ({"kind": "flat", "values": ["f", "m", "x"]}, "category", ["f", "m", "x"], ["y", 3]),
    ({"kind": "tree", "tree": {"*": {"a": ["b", "c"], "d": ["e"]}}}, "category", ["b", "c", "e"], ["a", "*"]),
    ({"kind": "csv", "path": "sizes.csv"}, "category", ["one", "two", "ten"], ["small"]),
    ({"kind": "prefix", "length": 3}, "category", ["021", "022", "100", "999"], ["0210", "ab1"]),
    ({"kind": "calendar", "levels": ["day", "month"]}, "timestamp", ["2026-03-01", "2026-03-30", "2027-01-01"], ["-"]),
    ({"kind": "set", "values": ["f", "m"]}, "category", ["f", "m"], ["x"]),
]


@pytest.mark.parametrize(("data", "kind", "values", "unknown"), KINDS, ids=[case[0]["kind"] for case in KINDS])
def test_hierarchies(tmp_path: Path, data: dict[str, Any], kind: str, values: list[Any], unknown: list[Any]) -> None:
    (tmp_path / "sizes.csv").write_text("one;small;*\ntwo;small;*\nten;large;*\n", encoding="utf-8")
    settings = HIERARCHIES[data["kind"]].model_validate(data)
    check_hierarchy(settings, values, unknown, type=kind, folder=tmp_path)


def test_every_hierarchy_is_checked() -> None:
    assert {case[0]["kind"] for case in KINDS} == set(HIERARCHIES.words)


def as_lines(path: Path, records: Records) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def as_array(path: Path, records: Records) -> None:
    path.write_text(json.dumps(list(records), indent=1), encoding="utf-8")


def as_csv(path: Path, records: Records, delimiter: str = ",") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(records)


def as_parquet(path: Path, records: Records) -> None:
    pq.write_table(pa.Table.from_pylist([dict(record) for record in records]), path)


def as_avro(path: Path, records: Records) -> None:
    kinds = {str: "string", int: "long"}
    fields = [{"name": name, "type": kinds[type(value)]} for name, value in records[0].items()]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "Row", "fields": fields}, records)


FORMATS: dict[type[Format], Callable[[Path, Records], None]] = {
    JsonLines: as_lines,
    JsonFile: as_array,
    CsvTable: as_csv,
    TsvTable: partial(as_csv, delimiter="\t"),
    Parquet: as_parquet,
    AvroFile: as_avro,
}


@pytest.mark.parametrize("kind", FORMATS)
def test_formats(kind: type[Format]) -> None:
    check_format(kind, FORMATS[kind])


def test_every_format_is_checked() -> None:
    assert set(FORMATS) == set(map(type, known_formats().values()))
