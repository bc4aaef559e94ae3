"""Read published files (JSON lines, CSV, Parquet) as chunks; only the columns of the policy are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from stream_anon.auditor.reading.formats import TableFormat, Unreadable, format_of
from stream_anon.auditor.reading.json_records import json_records
from stream_anon.auditor.reading.lines import LineReader, key_of
from stream_anon.auditor.reading.structures import is_compound
from stream_anon.auditor.scales import Scale

Kept = list[int] | None
"""Which records are kept, None for all of them."""


def read_chunks(path: Path, rules: Rules | None, findings: Findings) -> Iterator[Chunk]:
    """Yield the records of a published file in chunks."""
    kind = format_of(path)
    try:
        if kind is None:
            reader = LineReader(rules, findings)
            for lines in parts(json_records(path), AT_ONCE):
                yield reader.read(lines)
        else:
            yield from _tables(path, kind, rules, findings)
    except OSError as error:
        raise Unreadable(
            f"{path}: cannot be read: {error.strerror or 'not a file of its kind'}: is the name right?"
        ) from None


def _tables(path: Path, kind: TableFormat, rules: Rules | None, findings: Findings) -> Iterator[Chunk]:
    judged = False
    for columns, bad in kind.published(path):
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

        labels = [_labels(chosen(name), scale, kind.typed) for name, scale in rules.quasi.items()] if rules else []
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


def _labels(values: list[Any], scale: Scale, typed: bool) -> list[Any]:
    """Return labels as JSON would hold them: CSV files hold intervals and sets as JSON text."""
    if typed:
        return [hashable(value) for value in values]
    if scale.label_type is str:
        return values
    known: dict[str, Any] = {}
    for value in set(values):
        try:
            known[value] = None if value == "" else hashable(json.loads(value))
        except (ValueError, RecursionError):
            known[value] = value
    return [known[value] for value in values]
