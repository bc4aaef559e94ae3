"""Published files (JSON lines, CSV, Parquet) as chunks; only the columns of the policy are looked at."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stream_anon.audit.chunks import AT_ONCE, ENVELOPE, FACTS, Chunk, hashable, parts
from stream_anon.audit.findings import Findings
from stream_anon.audit.lines import LineReader
from stream_anon.audit.policy import Rules
from stream_anon.audit.scales import IntervalScale, SetScale
from stream_anon.errors import StreamAnonError

KINDS = {".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet"}


class Unreadable(StreamAnonError):
    """A file that is to be audited cannot be read."""


def read_chunks(path: Path, rules: Rules | None, findings: Findings, keep_plain: bool = False) -> Iterator[Chunk]:
    """The records of a published file."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise Unreadable(f"{path}: unknown kind of file; its name must end with one of: {', '.join(KINDS)}")
    try:
        if kind == "json":
            reader = LineReader(rules, findings, keep_plain)
            with path.open("rb") as file:
                for lines in parts((line for line in file if not line.isspace()), AT_ONCE):
                    yield reader.read(lines)
        else:
            yield from _tables(path, kind, rules, findings, keep_plain)
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror or 'not a file of its kind'}") from None


def _tables(path: Path, kind: str, rules: Rules | None, findings: Findings, keep_plain: bool) -> Iterator[Chunk]:
    judged = False
    for columns in csv_columns(path) if kind == "csv" else parquet_columns(path):
        if not judged:
            _judge_columns(columns, rules, findings)
            judged = True
        facts, kept = _facts(columns, findings)
        wanted = () if rules is None else (*rules.quasi, *rules.sensitive, *(rules.plain if keep_plain else ()))
        nothing = [None] * len(facts["group"])
        chosen: dict[str, Any] = {}
        for name in wanted:
            values = columns.get(name)
            chosen[name] = nothing if values is None else [values[i] for i in kept] if kept is not None else values
            if rules is not None and name in rules.quasi:
                chosen[name] = _labels(chosen[name], rules.quasi[name], kind)
        yield Chunk(facts, chosen)


def _judge_columns(columns: dict[str, list[Any]], rules: Rules | None, findings: Findings) -> None:
    """A column is in every record: what is wrong with one is told once."""
    extra = {f"{ENVELOPE}.{fact}" for fact in FACTS}
    odd = {name for name in columns if name.startswith(f"{ENVELOPE}.")} - extra
    if rules is not None:
        declared = set(rules.published)
        odd |= {name for name in columns if not _declared(name, declared | extra)}
        for name in sorted(declared):
            if name not in columns and not any(column.startswith(f"{name}.") for column in columns):
                findings.note("missing-field", count=1, column=name)
    for name in odd:
        hidden = rules is not None and name in rules.hidden
        findings.note("identifier-published" if hidden else "undeclared-field", count=1)


def _declared(name: str, declared: set[str]) -> bool:
    return name in declared or any(name.startswith(f"{field}.") for field in declared)


def _facts(columns: dict[str, list[Any]], findings: Findings) -> tuple[dict[str, Any], list[int] | None]:
    """The envelope's columns, and which records are kept if some have none that can be understood."""
    try:
        given = {fact: columns[f"{ENVELOPE}.{fact}"] for fact in FACTS}
    except KeyError:
        raise Unreadable("this is no output of stream-anon: it has no columns _anon.group, _anon.row, ...") from None
    kinds = {"policy": str, "group": str, "row": int, "size": int, "subjects": int, "loss": float}
    try:
        facts: dict[str, Any] = {fact: list(map(kinds[fact], values)) for fact, values in given.items()}
        if all(0 <= min(facts[fact]) <= max(facts[fact]) < 2**31 for fact in ("row", "size", "subjects")):
            return facts, None
    except (TypeError, ValueError):
        pass
    kept, facts = [], {fact: [] for fact in FACTS}
    for i, values in enumerate(zip(*given.values(), strict=True)):
        try:
            told = [kind(value) for kind, value in zip(kinds.values(), values, strict=True)]
            right = all(0 <= number < 2**31 for number in told[2:5])
        except (TypeError, ValueError):
            right = False
        if not right:
            findings.note("envelope", count=1)
            continue
        kept.append(i)
        for fact, value in zip(FACTS, told, strict=True):
            facts[fact].append(value)
    return facts, kept


def _labels(values: list[Any], scale: Any, kind: str) -> list[Any]:
    """Labels as JSON would hold them: intervals and sets are written into CSV as JSON."""
    if kind == "parquet":
        return [hashable(value) for value in values]
    if not isinstance(scale, IntervalScale | SetScale):
        return values
    known: dict[str, Any] = {}
    for value in set(values):
        try:
            known[value] = None if value == "" else hashable(json.loads(value))
        except ValueError:
            known[value] = value
    return [known[value] for value in values]


def csv_columns(path: Path) -> Iterator[dict[str, list[Any]]]:
    """Columns of text, some records at a time."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = file.readline()
        delimiter = max(",;\t", key=header.count)
        names = next(csv.reader([header], delimiter=delimiter), [])
        if len(set(names)) < len(names):
            raise Unreadable(f"{path}: two columns have the same name")
        try:
            for rows in parts((row for row in csv.reader(file, delimiter=delimiter) if row), AT_ONCE):
                if any(len(row) != len(names) for row in rows):
                    raise Unreadable(f"{path}: a line has more or fewer cells than the header")
                yield {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
        except (csv.Error, UnicodeDecodeError):
            raise Unreadable(f"{path}: not a CSV file in UTF-8") from None


def parquet_columns(path: Path) -> Iterator[dict[str, list[Any]]]:
    """Columns of plain values, nested ones by dotted name."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
        import pyarrow.parquet as pq  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise Unreadable("Parquet needs pyarrow: pip install 'stream-anon[parquet]'") from None
    with path.open("rb") as raw:
        try:
            for part in pq.ParquetFile(raw).iter_batches(batch_size=AT_ONCE):
                table = pa.Table.from_batches([part])
                while any(pa.types.is_struct(kind) for kind in table.schema.types):
                    table = table.flatten()
                yield {name: table.column(i).to_pylist() for i, name in enumerate(table.column_names)}
        except pa.ArrowInvalid:
            raise Unreadable(f"{path}: not a Parquet file") from None
