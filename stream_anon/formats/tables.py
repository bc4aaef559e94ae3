"""Read tables from files a part at a time: CSV, JSON lines and Parquet, by the suffix of the name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from stream_anon.core.decode import LineCount, Payload, Rejection
from stream_anon.core.encode import Encoded, Encoder
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.errors import StreamAnonError
from stream_anon.formats.csv_lines import CsvLines
from stream_anon.formats.lines import Lines

AT_ONCE = 10_000
"""Rows of a part."""

KINDS = {".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet"}


class TableError(StreamAnonError):
    """A table cannot be read or written."""


def kind_of(path: Path) -> str:
    """Return `csv`, `json` or `parquet`, by the suffix."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise TableError(f"{path}: unknown kind of file; its name must end with one of: {', '.join(KINDS)}")
    return kind


@dataclass(frozen=True, slots=True)
class Part:
    """A range of rows of a table, and how far into the whole they reach.

    `first` is the place of the first row among all rows, from 1; `numbers` are the lines of the file on which rows
    begin, or their places where there are no lines. `lines` counts where the lines went so far. Rows of a topic also
    bring where they stand, partition and offset, and their own times.
    """

    first: int
    numbers: Ints
    payloads: Sequence[Payload]
    reached: float
    lines: LineCount | None = None
    refs: Ints | None = None
    times: Floats | None = None

    def __len__(self) -> int:
        return len(self.payloads)

    def encode(self, encoder: Encoder, arrived: Floats) -> Encoded:
        """Encode the rows; a rejection's index is the number of its row."""
        ref = self.refs
        if ref is None:
            places = np.arange(self.first, self.first + len(self))
            ref = np.stack([np.zeros(len(self), dtype=np.int64), places], axis=1)
        encoded = encoder.encode(self.payloads, ref, arrived)
        moved = [Rejection(int(self.numbers[r.index]), r.code, r.column) for r in encoded.rejections]
        return Encoded(encoded.batch, moved)


def read_parts(path: Path, at_once: int = AT_ONCE, otherwise: str | None = None) -> Iterator[Part]:
    """Read the rows of a table, some at a time; `reached` goes from 0 to 1.

    `otherwise` is the kind of a file whose name does not say it; without it such a file is refused.
    """
    kind = KINDS.get(path.suffix.lower(), otherwise) or kind_of(path)
    try:
        yield from _parquet(path, at_once) if kind == "parquet" else _lines(path, kind, at_once)
    except OSError as error:
        raise TableError(f"{path}: cannot be read: {error.strerror or 'not a file of its kind'}") from None


def _lines(path: Path, kind: str, at_once: int) -> Iterator[Part]:
    """Read the records of a text file as `pipe` reads them, so that both reject the same lines."""
    size, first = max(path.stat().st_size, 1), 1
    with path.open("rb", buffering=0) as file:
        lines = Lines(file.fileno(), keep_blank=kind == "csv")
        source: Lines | CsvLines = CsvLines(lines, str(path)) if kind == "csv" else lines
        waiting: list[tuple[int, Payload]] = []
        while not source.ended:
            waiting += source.read(None)
            while len(waiting) >= at_once or (source.ended and waiting):
                part, waiting = waiting[:at_once], waiting[at_once:]
                numbers = np.array([number for number, _ in part], dtype=np.int64)
                payloads = [payload for _, payload in part]
                yield Part(first, numbers, payloads, min(lines.bytes / size, 1.0), source.count)
                first += len(part)
        yield Part(first, np.empty(0, dtype=np.int64), [], 1.0, source.count)


def _parquet(path: Path, at_once: int) -> Iterator[Part]:
    parquet = arrow().parquet
    with path.open("rb") as raw:
        try:
            file = parquet.ParquetFile(raw)
            total, number = max(file.metadata.num_rows, 1), 1
            for part in file.iter_batches(batch_size=at_once):
                cells = [{name: _as_json(cell) for name, cell in flat(row).items()} for row in part.to_pylist()]
                numbers = np.arange(number, number + len(cells))
                yield Part(number, numbers, cells, (number - 1 + len(cells)) / total)
                number += len(cells)
        except arrow().ArrowInvalid:
            raise TableError(f"{path}: not a Parquet file") from None


def _as_json(value: Any) -> Any:
    """Return a cell as JSON would hold it: dates and instants as text, decimals as numbers."""
    if isinstance(value, date):  # an instant is a date too
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the fields of a nested record by dotted path, without null ones.

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
    """Import the library that reads and writes Parquet."""
    try:
        import pyarrow  # type: ignore[import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise TableError("Parquet needs pyarrow: pip install 'stream-anon[parquet]'") from None
    return pyarrow
