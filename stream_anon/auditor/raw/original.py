"""The raw table beside the published one: which raw rows each published record can have been made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from stream_anon.auditor.numbers import Label, Rows, token_code
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.raw.matching import assign
from stream_anon.auditor.reading.chunks import AT_ONCE, hashable, parts
from stream_anon.auditor.reading.formats import Bad, Unreadable, format_of
from stream_anon.auditor.reading.json_records import json_records
from stream_anon.auditor.scales.base import text
from stream_anon.auditor.scales.trees import TreeScale

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Columns = Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A set of equal records of one group, and the raw rows that fit them."""

    group: int
    number: int
    candidates: Ints


class Original:
    """The raw rows as numbers: places of quasi-identifiers, codes of values published unchanged, people, guards."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._raised = [column for column in rules.sensitive.values() if column.raised]
        self._spans = {
            name: {column.code(label): column.scale.span(label) for label in column.scale.spans}
            for name, column in rules.sensitive.items()
            if isinstance(column.scale, TreeScale)
        }
        self._blocks: list[dict[str, Any]] = []
        self.places: dict[str, Floats] = {}
        self.values: dict[str, Ints] = {}
        self.guards: dict[str, Ints] = {}
        self.leaves: dict[str, Ints] = {}
        self.tokens: dict[str, Ints] = {}
        self.dates: dict[str, Ints] = {}
        self.subject: Ints = np.zeros(0, np.int64)
        self.times: Ints = np.zeros(0, np.int64)
        self.unread: list[Bad] = []
        self._by_key: dict[int, Ints] = {}

    def __len__(self) -> int:
        return len(self.subject)

    def add(self, columns: Columns, count: int, times: Ints | None = None) -> None:
        """Add more raw rows, as columns by dotted name; an absent column is missing everywhere."""
        rules, nothing, first = self._rules, [None] * count, sum(len(block["subject"]) for block in self._blocks)

        def column(name: str) -> list[Any]:
            return columns.get(name, nothing)

        def shown(name: str) -> list[Any]:
            """Return what must be published of a column, where no secret decides it."""
            check = rules.changes.get(name)
            return column(name) if check is None or not check.computable else list(map(check.expected, column(name)))

        block: dict[str, Any] = {"times": np.zeros(count, np.int64) if times is None else times}
        block["places"] = {
            name: np.array([scale.place(value) for value in column(name)], dtype=np.float64)
            for name, scale in rules.quasi.items()
        }
        block["values"] = {
            name: np.array(secret.codes_of(map(hashable, shown(name))), dtype=np.int64)
            for name, secret in rules.sensitive.items()
        }
        block["guards"] = {}
        for secret in self._raised:
            scale = secret.scale
            places = [scale.place(secret.respelled(value)) for value in column(secret.name)] if scale else []
            block["places"][secret.name] = np.array(places, dtype=np.float64)
            block["guards"][secret.name] = _guards(secret.scale, places, column(secret.guard_field or ""))
        plain = [[text(hashable(value)) for value in shown(name)] for name in rules.plain if rules.told(name)]
        block["plain"] = np.array(
            [hash(values) for values in zip(*plain, strict=True)] if plain else [0] * count, dtype=np.int64
        )
        block["tokens"] = {
            name: np.unique(np.array([token_code(hashable(v)) for v in column(name)], dtype=np.int64))
            for name in rules.tokens
        }
        block["dates"] = {
            name: np.array([check.milliseconds(v) for v in column(name)], dtype=np.int64)
            for name, check in rules.shifts.items()
        }
        named = column(rules.subject) if rules.subject else list(range(first, first + count))
        block["subject"] = np.array([hash(("subject", rules.naming.name(value))) for value in named], dtype=np.int64)
        self._blocks.append(block)

    def finish(self) -> Original:
        """Index all rows after the last of them was added."""
        blocks, self._blocks = self._blocks, []
        if not blocks:
            return self

        def joined(name: str, *path: str) -> Any:
            return np.concatenate([block[name][path[0]] if path else block[name] for block in blocks])

        self.places = {name: joined("places", name) for name in blocks[0]["places"]}
        self.values = {name: joined("values", name) for name in blocks[0]["values"]}
        self.guards = {name: joined("guards", name) for name in blocks[0]["guards"]}
        self.tokens = {name: joined("tokens", name) for name in blocks[0]["tokens"]}
        self.dates = {name: joined("dates", name) for name in blocks[0]["dates"]}
        for name, spans in self._spans.items():
            codes, at = np.unique(self.values[name], return_inverse=True)
            self.leaves[name] = np.array([spans.get(code, (-1, -1))[0] for code in codes.tolist()])[at]
        self.subject, self.times, plain = joined("subject"), joined("times"), joined("plain")
        keys = self._keys(plain, self.values)
        order = np.argsort(keys, kind="stable").astype(np.int32)
        found, starts = np.unique(keys[order], return_index=True)
        self._by_key = dict(zip(found.tolist(), np.split(order, starts[1:]), strict=True))
        return self

    def _keys(self, plain: Ints, values: Mapping[str, Ints]) -> Ints:
        """Hash everything that the raw row determines and that cannot have been raised in a tree."""
        fixed = [n for n, column in self._rules.sensitive.items() if not column.raised and self._rules.told(n)]
        columns = [plain, *(values[name] for name in fixed)]
        return np.array([hash(row) for row in zip(*(c.tolist() for c in columns), strict=True)], dtype=np.int64)

    def kinds(self, rows: Rows, labels: Mapping[int, Label]) -> Iterator[tuple[Kind, Ints]]:
        """Yield the kinds of equal records with their candidates and record indices; `rows` are sorted by group."""
        names = list(self._rules.sensitive)
        keys = self._keys(rows["plain"], {name: rows[f"s{i}"] for i, name in enumerate(names)})
        shown = [rows[f"s{names.index(column.name)}"] for column in self._raised]
        places = zip(
            rows["group"].tolist(), rows["box"].tolist(), keys.tolist(), *(s.tolist() for s in shown), strict=True
        )
        alike: dict[tuple[int, ...], list[int]] = {}
        for i, place in enumerate(places):
            alike.setdefault(place, []).append(i)
        for (group, box, key, *codes), index in alike.items():
            candidates = self._by_key.get(key, np.zeros(0, np.int32))
            for column, code in zip(self._raised, codes, strict=True):
                low, high = self._spans[column.name].get(code, (1, 0))
                at = self.places[column.name][candidates]
                candidates = candidates[(at >= low) & (at <= high)]
            yield Kind(group, len(index), self.covered(labels[box], candidates)), np.array(index)

    def covered(self, box: Label, candidates: Ints) -> Ints:
        """Return those of the raw rows that lie inside a box."""
        for (name, scale), label in zip(self._rules.quasi.items(), box, strict=True):
            if not len(candidates):
                break
            candidates = candidates[scale.covers(label, self.places[name][candidates])]
        return candidates

    def alike(self) -> tuple[Ints, Ints]:
        """Return how many people, and how many rows, share each combination of exact quasi-identifiers."""
        points = np.stack([self.places[name] for name in self._rules.quasi], axis=1)
        _, which = np.unique(points, axis=0, return_inverse=True, equal_nan=True)
        people = np.unique(np.stack([which.ravel(), self.subject], axis=1), axis=0)
        return np.bincount(people[:, 0]), np.bincount(which.ravel())

    def span(self, name: str, code: int) -> tuple[int, int]:
        """Return the leaves that a published value of an attribute with a tree stands for."""
        return self._spans[name].get(code, (0, -1))


def match(kinds: Sequence[tuple[Kind, Ints]], count: int, raw: int) -> tuple[Ints, list[Kind]]:
    """Assign a raw row to each record, each row once, -1 where none is left; also return the kinds that lack rows."""
    owner, lacking = assign([kind.number for kind, _ in kinds], [kind.candidates for kind, _ in kinds], raw)
    free = [iter(index.tolist()) for _, index in kinds]
    rows = np.full(count, -1, dtype=np.int64)
    for row in np.flatnonzero(owner >= 0).tolist():
        rows[next(free[int(owner[row])])] = row
    return rows, [kind for (kind, _), missing in zip(kinds, lacking, strict=True) if missing]


def _guards(scale: Any, places: list[float], labels: list[Any]) -> Ints:
    """Return the first and last leaf below each row's guarding node; (0, -1) where nothing is guarded."""
    found = np.zeros((len(places), 2), dtype=np.int64)
    found[:, 1] = -1
    for i, (place, label) in enumerate(zip(places, labels, strict=True)):
        if label and not math.isnan(place) and isinstance(scale, TreeScale):
            found[i] = scale.guarded(int(place), str(label)) or (0, -1)
    return found


def read_original(path: Path, rules: Rules, encoding: str | None = None) -> Original:
    """Read the raw table from a file; `encoding` is that of text without a byte order mark, UTF-8 if not named."""
    original = Original(rules)
    for columns, bad in raw_columns(path, encoding):
        original.add(columns, len(next(iter(columns.values()), [])))
        original.unread += bad
    return original.finish()


def raw_columns(path: Path, encoding: str | None = None) -> Iterator[tuple[Columns, list[Bad]]]:
    """Yield the columns of a raw file, some rows at a time, and which lines are not records."""
    kind = format_of(path)
    if encoding is not None and kind is not None and not kind.packable:
        raise Unreadable(f"{path}: such a file has no encoding to be named: leave it out")
    try:
        if kind is None:
            numbered = ((i, line) for i, line in enumerate(json_records(path, encoding), start=1) if line.strip())
            for some in parts(numbered, AT_ONCE):
                columns, places = json_columns([line for _, line in some])
                yield columns, [Bad(place, some[place][0], code) for place, code in places]
        else:
            yield from kind.columns(path) if encoding is None else kind.columns(path, encoding)
    except OSError as error:
        raise Unreadable(
            f"{path}: cannot be read: {error.strerror or 'not a file of its kind'}: is the name right?"
        ) from None


def json_columns(lines: Iterable[bytes | None]) -> tuple[Columns, list[tuple[int, str]]]:
    """Read JSON records into columns, nested fields by dotted path and whole.

    Also return the places of lines that are not records; such a line has no field.
    """
    columns: dict[str, list[Any]] = {}
    count = 0
    bad: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        count = number + 1
        try:
            record = msgspec.json.decode(line or b"{}")
        except msgspec.ValidationError:  # JSON, with a number that is too large
            record = {} if (line or b"").lstrip().startswith(b"{") else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            record = {}
            bad.append((number, "registry_framing" if (line or b"").startswith(b"\0") else "not_json"))
        if not isinstance(record, dict):
            bad.append((number, "not_object"))
        for name, value in _paths(record if isinstance(record, dict) else {}):
            column = columns.setdefault(name, [])
            column.extend([None] * (number - len(column)))
            column.append(value)
    for column in columns.values():
        column.extend([None] * (count - len(column)))
    return columns or {"": [None] * count}, bad


def _paths(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        yield f"{prefix}{key}", value
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{key}.")
