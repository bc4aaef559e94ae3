"""Tables in files: CSV, JSON lines and Parquet, read a part at a time; what is read is told apart by the suffix."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from stream_anon.core.decode import Payload, Reject, Rejection
from stream_anon.core.encode import Encoded, Encoder
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.errors import StreamAnonError
from stream_anon.io.lines import LINE_LIMIT

AT_ONCE = 10_000
"""Rows of a part."""

KINDS = {".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet"}


class TableError(StreamAnonError):
    """A table cannot be read or written."""


def kind_of(path: Path) -> str:
    """`csv`, `json` or `parquet`, by the suffix."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise TableError(f"{path}: unknown kind of file; its name must end with one of: {', '.join(KINDS)}")
    return kind


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a table, numbered from 1, either as bytes or as cells, and how far into the whole they reach.

    Rows of a topic also bring where they stand, partition and offset, and their own times.
    """

    first: int
    payloads: Sequence[Payload] | None
    cells: Sequence[Mapping[str, Any]]
    reached: float
    refs: Ints | None = None
    times: Floats | None = None

    def __len__(self) -> int:
        return len(self.cells if self.payloads is None else self.payloads)

    def encode(self, encoder: Encoder, arrived: Floats) -> Encoded:
        """The rows; a rejection's index is the number of its row in the table."""
        n = len(self)
        ref = self.refs
        if ref is None:
            ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(self.first, self.first + n)], axis=1)
        if self.payloads is None:
            encoded = encoder.encode_cells(self.cells, ref, arrived)
        else:
            encoded = encoder.encode(self.payloads, ref, arrived)
        moved = [Rejection(self.first + r.index, r.code, r.column) for r in encoded.rejections]
        return Encoded(encoded.batch, moved)


def read_parts(path: Path, at_once: int = AT_ONCE) -> Iterator[Part]:
    """The rows of a table, some at a time; `reached` goes from 0 to 1."""
    kind = kind_of(path)
    try:
        yield from {"csv": _csv, "json": _json, "parquet": _parquet}[kind](path, at_once)
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror or 'not a file of its kind'}") from None


def _csv(path: Path, at_once: int) -> Iterator[Part]:
    size = max(path.stat().st_size, 1)
    with path.open("rb") as raw, TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        try:
            header = file.readline()
            delimiter = max(",;\t", key=header.count)
            names = next(csv.reader([header], delimiter=delimiter), [])
            if len(set(names)) < len(names):
                raise TableError(f"{path}: two columns have the same name")
            lines, number = csv.reader(file, delimiter=delimiter), 1
            while rows := list(islice(lines, at_once)):
                cells = [dict(zip(names, row, strict=False)) for row in rows]
                yield Part(number, None, cells, raw.tell() / size)
                number += len(rows)
        except (csv.Error, UnicodeDecodeError):
            raise TableError(f"{path}: not a CSV file in UTF-8") from None


def _json(path: Path, at_once: int) -> Iterator[Part]:
    size, done, number = max(path.stat().st_size, 1), 0, 1
    with path.open("rb") as file:
        while lines := list(islice(file, at_once)):
            done += sum(map(len, lines))
            payloads: list[Payload] = [
                Reject.TOO_LARGE if len(line) > LINE_LIMIT else line.removeprefix(b"\xef\xbb\xbf")
                for line in lines
                if line.strip()
            ]
            yield Part(number, payloads, (), done / size)
            number += len(payloads)


def _parquet(path: Path, at_once: int) -> Iterator[Part]:
    parquet = arrow().parquet
    with path.open("rb") as raw:
        try:
            file = parquet.ParquetFile(raw)
            total, number = max(file.metadata.num_rows, 1), 1
            for part in file.iter_batches(batch_size=at_once):
                cells = [{name: _as_json(cell) for name, cell in flat(row).items()} for row in part.to_pylist()]
                yield Part(number, None, cells, (number - 1 + len(cells)) / total)
                number += len(cells)
        except arrow().ArrowInvalid:
            raise TableError(f"{path}: not a Parquet file") from None


def _as_json(value: Any) -> Any:
    """A cell as JSON would hold it: dates and instants as text, decimals as numbers."""
    if isinstance(value, date):  # an instant is a date too
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of a nested record by dotted path, null ones left out.

    >>> flat({"a": {"b": 1, "c": None}, "d": [2]})
    {'a.b': 1, 'd': [2]}
    """
    found: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        elif value is not None:
            found[f"{prefix}{key}"] = value
    return found


def arrow() -> Any:
    """The library that reads and writes Parquet."""
    try:
        import pyarrow  # type: ignore[import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise TableError("Parquet needs pyarrow: pip install 'stream-anon[parquet]'") from None
    return pyarrow
