"""Read published files (JSON lines, CSV, Parquet) as chunks; only the columns of the policy are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stream_anon.auditor.findings import Findings
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.reading.chunks import (
    AT_ONCE,
    COUNTS,
    ENVELOPE,
    FACTS,
    Chunk,
    Coded,
    counts,
    hashable,
    parts,
    tuples,
)
from stream_anon.auditor.reading.csv_rows import CsvTable
from stream_anon.auditor.reading.lines import LineReader, key_of
from stream_anon.auditor.reading.structures import is_compound
from stream_anon.errors import StreamAnonError

KINDS = {".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet"}

_FORMULA = frozenset("=+-@\t\r")

Kept = list[int] | None
"""Which records are kept, None for all of them."""


class Bad(NamedTuple):
    """A line that is not a record: its place among those read with it, its number, and the code of what is wrong."""

    place: int
    line: int
    code: str


class Unreadable(StreamAnonError):
    """A file to be audited cannot be read."""


def read_chunks(path: Path, rules: Rules | None, findings: Findings) -> Iterator[Chunk]:
    """Yield the records of a published file in chunks."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise Unreadable(f"{path}: unknown kind of file; its name must end with one of: {', '.join(KINDS)}")
    try:
        if kind == "json":
            reader = LineReader(rules, findings)
            with path.open("rb") as file:
                for lines in parts(file, AT_ONCE):
                    yield reader.read(lines)
        else:
            yield from _tables(path, kind, rules, findings)
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror or 'not a file of its kind'}") from None


def _tables(path: Path, kind: str, rules: Rules | None, findings: Findings) -> Iterator[Chunk]:
    judged = False
    for columns, bad in csv_columns(path) if kind == "csv" else parquet_columns(path):
        if not judged:
            _judge_columns(columns, rules, findings)
            judged = True
        if bad:
            findings.note("not-readable", count=len(bad), lines=[one.line for one in bad])
            left = {one.place for one in bad}
            columns = {n: [v for i, v in enumerate(vs) if i not in left] for n, vs in columns.items()}
        facts, kept = _facts(columns, findings)
        count = len(facts["group"])

        def chosen(name: str, columns: dict[str, list[Any]] = columns, kept: Kept = kept, n: int = count) -> list[Any]:
            values = columns.get(name, [None] * n)
            return values if kept is None or name not in columns else [values[i] for i in kept]

        labels = [_labels(chosen(name), scale, kind) for name, scale in rules.quasi.items()] if rules else []
        for name in (*rules.sensitive, *rules.plain) if rules else ():
            inside = [
                i
                for i, value in enumerate(chosen(name))
                if is_compound(value, rules is not None and name in rules.lists)
            ]
            findings.note("compound-value", dict.fromkeys(key_of(facts["group"][i]) for i in inside), column=name)
        own = [[hashable(v) for v in chosen(name)] for name in (*rules.sensitive, *rules.plain)] if rules else []
        yield Chunk(
            Coded.of(tuples(labels, count)),
            Coded.of(tuples(own, count)),
            Coded.of(tuples([facts["policy"], facts["group"]], count)),
            Coded.of(tuples([facts["size"], facts["subjects"], facts["loss"]], count)),
            np.array(facts["row"], dtype=np.int64),
        )


def _judge_columns(columns: dict[str, list[Any]], rules: Rules | None, findings: Findings) -> None:
    """Check the columns of a table; a column is in every record, so a fault is noted once."""
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


_READ = FACTS | {"subjects": lambda value: None if value in (None, "") else int(value)}
"""How to parse each cell of the envelope."""


def _facts(columns: dict[str, list[Any]], findings: Findings) -> tuple[dict[str, Any], Kept]:
    """Return the columns of the envelope, and which records are kept if some have an envelope that cannot be parsed."""
    try:
        given = {fact: columns[f"{ENVELOPE}.{fact}"] for fact in FACTS}
    except KeyError:
        raise Unreadable("this is no output of stream-anon: it has no columns _anon.group, _anon.row, ...") from None
    try:
        facts: dict[str, Any] = {fact: list(map(_READ[fact], values)) for fact, values in given.items()}
        if all(counts(facts[fact]) for fact in COUNTS):
            return facts, None
    except (TypeError, ValueError):
        pass
    kept, facts = [], {fact: [] for fact in FACTS}
    for i, values in enumerate(zip(*given.values(), strict=True)):
        try:
            parsed = [read(value) for read, value in zip(_READ.values(), values, strict=True)]
            right = counts(parsed[2:5])
        except (TypeError, ValueError):
            right = False
        if not right:
            findings.note("envelope", count=1)
            continue
        kept.append(i)
        for fact, value in zip(FACTS, parsed, strict=True):
            facts[fact].append(value)
    return facts, kept


def _labels(values: list[Any], scale: Any, kind: str) -> list[Any]:
    """Return labels as JSON would hold them: CSV files hold intervals and sets as JSON text."""
    if kind == "parquet":
        return [hashable(value) for value in values]
    if scale is None or scale.label_type is str:
        return values
    known: dict[str, Any] = {}
    for value in set(values):
        try:
            known[value] = None if value == "" else hashable(json.loads(value))
        except ValueError:
            known[value] = value
    return [known[value] for value in values]


def csv_columns(path: Path) -> Iterator[tuple[dict[str, list[Any]], list[Bad]]]:
    """Yield columns of text, some records at a time, and which lines are not records.

    A line that is no record has no value in any column.
    """
    with path.open("rb") as file:
        table = CsvTable(path, file)
        nothing = [None] * len(table.names)
        for rows in parts(table, AT_ONCE):
            cells = [nothing if isinstance(row, str) else list(map(unquoted, row)) for _, row in rows]
            bad = [Bad(i, line, row) for i, (line, row) in enumerate(rows) if isinstance(row, str)]
            columns = list(zip(*cells, strict=True)) if table.names else []
            yield {name: list(column) for name, column in zip(table.names, columns, strict=True)}, bad


def unquoted(cell: str) -> str:
    """Return a cell without the mark that keeps spreadsheets from running it as a formula.

    >>> unquoted("'=1+1"), unquoted("''@x"), unquoted("'tis"), unquoted("-1")
    ('=1+1', "'@x", "'tis", '-1')
    """
    return cell[1:] if cell[:1] == "'" and cell.lstrip("'")[:1] in _FORMULA else cell


def parquet_columns(path: Path) -> Iterator[tuple[dict[str, list[Any]], list[Bad]]]:
    """Yield columns of plain values, nested ones by dotted name."""
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
                yield {name: table.column(i).to_pylist() for i, name in enumerate(table.column_names)}, []
        except pa.ArrowInvalid:
            raise Unreadable(f"{path}: not a Parquet file") from None
