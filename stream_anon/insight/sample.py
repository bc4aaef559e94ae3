"""Read the first records of a table as a sample, exactly as a run does; other lines are reported by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from stream_anon.core.decode import Decoder, Payload, Reject, Rejection
from stream_anon.core.schema import Schema
from stream_anon.errors import Diagnostic, Severity
from stream_anon.formats.tables import Part, flat, read_parts
from stream_anon.local.trial import encode_all
from stream_anon.observe.tally import Tally

LIMIT = 10_000
"""Rows. Enough to meet rare values, few enough to answer within a second or two."""

SHOWN = 20
"""Rejections that are listed one by one."""

Row = Mapping[str, Any]
_MEANINGS = {
    Reject.CELL_COUNT: "has more or fewer cells than the header",
    Reject.NOT_CSV: "breaks the rules of CSV: an open quote, or text behind a closing one",
    Reject.NOT_UTF8: "is not UTF-8",
    Reject.NOT_JSON: "is not JSON",
    Reject.NOT_OBJECT: "is not a JSON object",
    Reject.TOO_LARGE: "is longer than a record may be",
    Reject.REGISTRY_FRAMING: "is not JSON; it looks like schema-registry framing",
}

_REMEDIES = {
    Reject.CELL_COUNT: "put quotes around cells that hold the separator",
    Reject.NOT_CSV: "close the quote; a quote inside a quoted cell is written twice",
    Reject.NOT_UTF8: "if many lines are told, name the encoding: --encoding windows-1252; else correct these lines",
    Reject.NOT_JSON: "give one JSON object a line, in UTF-8; another encoding is named with --encoding",
    Reject.TOO_LARGE: "split it, or leave out the field that is so long",
    Reject.REGISTRY_FRAMING: "read it from its topic: stream-anon init kafka:TOPIC --registry URL",
    Reject.NOT_OBJECT: "if the file is one array of all records, name it .json",
}


@dataclass
class Sample:
    """The readable records, fields by dotted path, absent and empty ones left out; and the other lines."""

    file: Path
    rows: list[Row] = field(default_factory=list)
    unread: list[Rejection] = field(default_factory=list)

    def findings(self, rejections: list[Rejection], count: int) -> list[Diagnostic]:
        """Return one finding per kind of line that is not a record under any policy, with the first place."""
        kinds: dict[Reject, list[int]] = {}
        for rejection in rejections:
            if rejection.code in _MEANINGS:
                kinds.setdefault(rejection.code, []).append(rejection.index)
        return [
            Diagnostic(
                str(code),
                f"this record {_MEANINGS[code]}; {len(lines):,} of {count:,} in the sample would be rejected for it",
                str(self.file),
                lines[0],
                hint=_REMEDIES.get(code, ""),
                severity=Severity.WARNING,
            )
            for code, lines in kinds.items()
        ]


def remedy_of(rejections: Sequence[Rejection]) -> str:
    """Return what helps against the most frequent reason for lines that are not records."""
    code = Counter(rejection.code for rejection in rejections).most_common(1)[0][0]
    return _REMEDIES.get(code, f"look up {code} in docs/tables.md")


def read_sample(path: Path, limit: int = LIMIT, encoding: str | None = None) -> Sample:
    """Read the first records of a table."""
    sample = Sample(path)
    decoder = Decoder({})
    for part in read_parts(path, limit, otherwise=".jsonl", encoding=encoding):
        for number, payload in zip(part.numbers.tolist(), part.payloads, strict=True):
            refused = decoder.decode(payload)
            if isinstance(refused, tuple):
                sample.unread.append(Rejection(number, refused[0]))
            else:
                sample.rows.append(_row(payload))
        if part.first + len(part) > limit:
            break
    return sample


def rejections_of(
    path: Path, schema: Schema, limit: int = LIMIT, encoding: str | None = None
) -> tuple[list[Rejection], int]:
    """Encode the first records under a policy; return what a run would reject, and how many records were tried."""
    found: list[Rejection] = []
    tally = Tally([], 1, schema.counts)
    parts = read_parts(path, limit, otherwise=".jsonl", encoding=encoding)
    encode_all(_first(parts, limit), schema, tally, found.extend, lambda share: None)
    return found, tally.consumed


def _first(parts: Iterator[Part], limit: int) -> Iterator[Part]:
    """Yield parts until they have `limit` records."""
    for part in parts:
        yield part
        if part.first + len(part) > limit:
            return


def letters(rejections: Sequence[Rejection]) -> list[dict[str, Any]]:
    """Return the first rejections as dead letters show them: line, code and column, never a value."""
    return [{"line": r.index, "code": str(r.code), "column": r.column} for r in rejections[:SHOWN]]


def _row(payload: Payload) -> Row:
    if isinstance(payload, dict):
        return {name: cell for name, cell in flat(payload).items() if cell != ""}
    assert isinstance(payload, bytes)  # noqa: S101 - anything else was refused
    return {name: value for name, value in flat(msgspec.json.decode(payload)).items() if value != ""}
