"""JSON records to columns: many in one go where they are as they should be, one by one with care where they are not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from stream_anon.audit.chunks import ENVELOPE, FACTS, Chunk, hashable
from stream_anon.audit.findings import Findings
from stream_anon.audit.policy import Rules
from stream_anon.audit.scales import IntervalScale, SetScale

_ENVELOPE_TYPES = {"policy": str, "group": str, "row": int, "size": int, "subjects": int, "loss": float}
_NO_GROUP = "0" * 16


class LineReader:
    """Reads records under the rules, or the envelope alone without any.

    The fast way decodes a whole chunk into structures that refuse unknown and missing fields, and counts the fields
    of the text, so that none can stand twice. Anything odd is read again with care, and told.
    """

    def __init__(self, rules: Rules | None, findings: Findings, keep_plain: bool = False) -> None:
        self._rules, self._findings = rules, findings
        kinds: dict[str, Any] = {f"{ENVELOPE}.{fact}": kind for fact, kind in _ENVELOPE_TYPES.items()}
        self._names: tuple[str, ...] = ()
        self._allowed: frozenset[str] = frozenset(kinds)
        if rules is not None:
            for name, scale in rules.quasi.items():
                pair = tuple[int | float | None, int | float | None] | None
                words = tuple[str, ...]
                kinds[name] = (
                    pair if isinstance(scale, IntervalScale) else words if isinstance(scale, SetScale) else str
                )
            kinds |= dict.fromkeys(rules.sensitive, str | int | float | bool | None)
            kinds |= dict.fromkeys(rules.plain, Any if keep_plain else msgspec.Raw)
            self._allowed = frozenset(kinds)
            self._names = (*rules.quasi, *rules.sensitive, *(rules.plain if keep_plain else ()))
        structure, self._fields = _structure(_nested(kinds), strict=rules is not None)
        self._decode = msgspec.json.Decoder(list[structure]).decode  # type: ignore[valid-type]
        self._get = {name: attrgetter(_path(structure, name.split("."))) for name in kinds}

    def read(self, lines: Sequence[bytes], times: npt.NDArray[np.int64] | None = None) -> Chunk:
        """The columns of all lines that tell their group."""
        text = b",".join(lines)
        try:
            rows = self._decode(b"[" + text + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._carefully(lines, times)
        if len(rows) != len(lines) or (self._rules and text.count(b'":') != self._fields * len(lines)):
            return self._carefully(lines, times)
        facts = {fact: list(map(self._get[f"{ENVELOPE}.{fact}"], rows)) for fact in FACTS}
        columns: dict[str, Sequence[Any]] = {name: list(map(self._get[name], rows)) for name in self._names}
        return Chunk(facts, columns, times)

    def _carefully(self, lines: Sequence[bytes], times: npt.NDArray[np.int64] | None) -> Chunk:
        facts: dict[str, list[Any]] = {fact: [] for fact in FACTS}
        columns: dict[str, list[Any]] = {name: [] for name in self._names}
        kept = []
        for number, line in enumerate(lines):
            record = self._record(line)
            if record is None:
                continue
            kept.append(number)
            for fact in FACTS:
                facts[fact].append(record[f"{ENVELOPE}.{fact}"])
            for name in self._names:
                columns[name].append(record.get(name))
        return Chunk(dict(facts), dict(columns), None if times is None else times[kept])

    def _record(self, line: bytes) -> dict[str, Any] | None:
        """One record by dotted names, everything odd about it noted; None if it does not tell its group."""
        note, twice = self._findings.note, [False]

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(pairs)
            twice[0] |= len(found) < len(pairs)
            return found

        try:
            data = json.loads(line, object_pairs_hook=once, parse_constant=float)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            note("not-readable", count=1)
            return None
        record = {name: hashable(value) for name, value in _flat(data, self._allowed).items()}
        group = key_of(record.get(f"{ENVELOPE}.group"))
        if twice[0]:
            note("duplicate-field", [group])
        for fact, kind in _ENVELOPE_TYPES.items():
            value = record.get(f"{ENVELOPE}.{fact}")
            right = isinstance(value, int | float if kind is float else kind) and not isinstance(value, bool)
            if not right or (kind is int and not 0 <= value < 2**31):
                note("envelope", [group])
                return None
        self._judge_fields(record, group)
        return record

    def _judge_fields(self, record: dict[str, Any], group: int) -> None:
        rules, note = self._rules, self._findings.note
        for name in record.keys() - self._allowed:
            if rules is not None or name.startswith(ENVELOPE):
                note("identifier-published" if rules and name in rules.hidden else "undeclared-field", [group])
        for name in self._allowed - record.keys():
            note("missing-field", [group], column=name)


def key_of(group: Any) -> int:
    """The number of a group's id; text that is no id becomes a number that tells nothing of it."""
    if isinstance(group, str) and len(group) == len(_NO_GROUP):
        try:
            return int(group, 16)
        except ValueError:
            pass
    return hash(("group", str(group))) & (2**64 - 1)


def _nested(kinds: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, kind in kinds.items():
        *parents, last = name.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = kind
    return tree


def _structure(tree: dict[str, Any], strict: bool) -> tuple[type[msgspec.Struct], int]:
    """A structure whose fields f0, f1, ... have the names of the tree, and how many keys one record of it has."""
    fields, keys = [], len(tree)
    for i, kind in enumerate(tree.values()):
        if isinstance(kind, dict):
            kind, below = _structure(kind, strict=True)
            keys += below
        fields.append((f"f{i}", kind))
    names = {f"f{i}": name for i, name in enumerate(tree)}
    made = msgspec.defstruct("Record", fields, rename=names, forbid_unknown_fields=strict, gc=False)
    return made, keys


def _path(structure: Any, path: list[str]) -> str:
    [found] = [f for f in msgspec.structs.fields(structure) if f.encode_name == path[0]]
    return found.name if len(path) == 1 else f"{found.name}.{_path(found.type, path[1:])}"


def _flat(record: dict[str, Any], whole: frozenset[str], prefix: str = "") -> dict[str, Any]:
    """Fields by dotted path; an object that is itself a declared field stays whole."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name not in whole and value:
            found |= _flat(value, whole, f"{name}.")
        else:
            found[name] = value
    return found
