"""Read JSON lines into chunks: many at once where they are well-formed, one by one where they are not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from stream_anon.auditor.findings import Findings
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.reading.chunks import ENVELOPE, FACTS, Chunk, Coded, Ints, counts, hashable, tuples
from stream_anon.auditor.reading.fragments import Fragments
from stream_anon.auditor.reading.structures import Form, Kinds, envelope_kinds, is_compound, label_kinds, own_kinds


class LineReader:
    """The reader of records under the rules, or of the envelope alone without any; it notes everything odd."""

    def __init__(self, rules: Rules | None, findings: Findings) -> None:
        self._rules, self._findings = rules, findings
        self._labels: Kinds = label_kinds(rules) if rules else {}
        self._own: Kinds = own_kinds(rules) if rules else {}
        kinds = self._labels | self._own | envelope_kinds()
        self._allowed = frozenset(kinds)
        self._fragments = Fragments(rules) if rules and Fragments.fits(rules) else None
        self._form = Form(kinds, strict=rules is not None)

    def read(self, lines: Sequence[bytes], times: Ints | None = None) -> Chunk:
        """Return the records of all lines that name their group."""
        chunk = self._fragments.read(lines, times) if self._fragments else None
        if chunk is not None:
            return chunk
        columns = self._form.columns(lines)
        if columns is None or not all(map(counts, columns[-4:-1])):
            return self._carefully(lines, times)
        return self._chunk([[hashable(value) for value in column] for column in columns], len(lines), times)

    def _chunk(self, columns: list[list[Any]], count: int, times: Ints | None) -> Chunk:
        """Make a chunk of columns in the order labels, own values, envelope."""
        labels, own = columns[: len(self._labels)], columns[len(self._labels) : -len(FACTS)]
        policy, group, row, *sums = columns[-len(FACTS) :]
        return Chunk(
            Coded.of(tuples(labels, count)),
            Coded.of(tuples(own, count)),
            Coded.of(tuples([policy, group], count)),
            Coded.of(tuples(sums, count)),
            np.array(row, dtype=np.int64),
            times,
        )

    def _carefully(self, lines: Sequence[bytes], times: Ints | None) -> Chunk:
        names = [*self._labels, *self._own, *envelope_kinds()]
        read = [None if line.isspace() else self._record(line) for line in lines]
        records = [record for record in read if record is not None]
        columns = [[record.get(name) for record in records] for name in names]
        kept = [i for i, record in enumerate(read) if record is not None]
        return self._chunk(columns, len(records), None if times is None else times[kept])

    def _record(self, line: bytes) -> dict[str, Any] | None:
        """Read one record by dotted names and note everything odd about it; None if it does not name its group."""
        note, twice = self._findings.note, [False]

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(pairs)
            twice[0] |= len(found) < len(pairs)
            return found

        try:
            data = json.loads(line, object_pairs_hook=once)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            note("not-readable", count=1)
            return None
        fields = _flat(data, self._allowed)
        record = {name: hashable(value) for name, value in fields.items()}
        group = key_of(record.get(f"{ENVELOPE}.group"))
        if twice[0]:
            note("duplicate-field", [group])
        if not all(_right(record.get(f"{ENVELOPE}.{fact}"), kind) for fact, kind in FACTS.items()):
            note("envelope", [group])
            return None
        self._judge_fields(record, group)
        for name in self._own.keys() & fields.keys():
            if self._rules is not None and is_compound(fields[name], name in self._rules.lists):
                note("compound-value", [group], column=name)
        return record

    def _judge_fields(self, record: dict[str, Any], group: int) -> None:
        rules, note = self._rules, self._findings.note
        for name in record.keys() - self._allowed:
            if rules is not None or name.startswith(ENVELOPE):
                note("identifier-published" if rules and name in rules.hidden else "undeclared-field", [group])
        for name in self._allowed - record.keys():
            note("missing-field", [group], column=name)


def _right(value: Any, kind: Any) -> bool:
    """Tell whether a fact of the envelope has the right type."""
    if isinstance(value, bool):
        return False
    if value is None or kind in (int, FACTS["subjects"]):
        return isinstance(value, kind) and counts([value])
    return isinstance(value, int | float if kind is float else kind)


def key_of(group: Any) -> int:
    """Return the number of a group's id; text that is not an id becomes a hash that reveals nothing of it."""
    if isinstance(group, str) and len(group) == 16:
        try:
            return int(group, 16)
        except ValueError:
            pass
    return hash(("group", str(group))) & (2**64 - 1)


def _flat(record: dict[str, Any], whole: frozenset[str], prefix: str = "") -> dict[str, Any]:
    """Return the fields by dotted path; an object that is itself a declared field stays whole."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name not in whole and value:
            found |= _flat(value, whole, f"{name}.")
        else:
            found[name] = value
    return found
