"""The first rows of a data sample, JSON lines or CSV, one at a time; an error names the line, never what is in it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from stream_anon.errors import StreamAnonError

LIMIT = 10_000
"""Rows. Enough to meet rare values, few enough to answer within a second or two."""

Row = Mapping[str, Any]


class SampleError(StreamAnonError):
    """The data sample cannot be read. The policy may still be good."""


def read_sample(path: Path, limit: int = LIMIT) -> Iterator[Row]:
    """The first rows; fields of nested records are named by their dotted path, absent and empty ones are left out."""
    rows = _lines_of_csv(path) if path.suffix.lower() == ".csv" else _lines_of_json(path)
    return islice(rows, limit)


def flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of a nested record by dotted path; null counts as absent.

    >>> flatten({"a": {"b": 1, "c": None}, "d": [2]})
    {'a.b': 1, 'd': [2]}
    """
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        elif value is not None:
            flat[f"{prefix}{key}"] = value
    return flat


def _lines_of_json(path: Path) -> Iterator[Row]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _decoded(decode, line, f"{path}:{number}")
    except OSError as error:
        raise SampleError(f"{path}: cannot be read: {error.strerror}") from None


def _decoded(decode: Callable[[bytes], dict[str, Any]], line: bytes, place: str) -> dict[str, Any]:
    try:
        return flatten(decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SampleError(f"{place}: this line is not a JSON object") from None


def _lines_of_csv(path: Path) -> Iterator[Row]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            delimiter = ";" if header.count(";") > header.count(",") else ","
            names = next(csv.reader([header], delimiter=delimiter), [])
            for cells in csv.reader(file, delimiter=delimiter):
                yield {name: cell for name, cell in zip(names, cells, strict=False) if cell != ""}
    except (csv.Error, UnicodeDecodeError):
        raise SampleError(f"{path}: not a CSV file in UTF-8") from None
    except OSError as error:
        raise SampleError(f"{path}: cannot be read: {error.strerror}") from None
