"""Decode the bytes of a record into the fields a policy declares, and no others; other records are rejected by code."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy import Ints

_PATH = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_CATEGORY = str | int | bool | None
_TYPES: dict[str, Any] = {
    "category": _CATEGORY,
    "integer": int | None,
    "number": float | None,
    "integer or text": int | str | None,
    "number or text": float | str | None,
    "timestamp": str | int | float | None,
    "any": Any,
    "identifier": str | int | float | bool | None,
    "psf": int | None,
    "label": str | None,
}

_AS_THEY_ARE: dict[str, frozenset[type]] = {
    "category": frozenset({str, int, bool}),
    "integer": frozenset({int}),
    "number": frozenset(),
    "integer or text": frozenset({int, str}),
    "number or text": frozenset({str}),
    "timestamp": frozenset({str, int}),
    "any": frozenset({str, int, bool}),
    "identifier": frozenset({str, int, bool}),
    "psf": frozenset({int}),
    "label": frozenset({str}),
}
"""Types of cells that need no conversion; a float may be NaN, which JSON does not know."""


class Reject(StrEnum):
    """Why a record cannot be anonymized. The code and the column are all that is ever reported of it."""

    TOMBSTONE = "tombstone"
    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    NOT_OBJECT = "not_object"
    REGISTRY_FRAMING = "registry_framing"
    NOT_FRAMED = "not_framed"
    UNKNOWN_SCHEMA = "unknown_schema"
    UNUSABLE_SCHEMA = "unusable_schema"
    NOT_BY_SCHEMA = "not_by_schema"
    NOT_UTF8 = "not_utf8"
    NOT_CSV = "not_csv"
    CELL_COUNT = "cell_count"
    WRONG_TYPE = "wrong_type"
    MISSING = "missing"
    UNKNOWN = "unknown"
    BAD_GUARD = "bad_guard"
    BAD_PSF = "bad_psf"
    UNPLACEABLE = "unplaceable"


@dataclass(frozen=True, slots=True)
class Rejection:
    """The rejection of row `index` of the input because of `column`; empty if the record as a whole is at fault."""

    index: int
    code: Reject
    column: str = ""


Getter = Callable[[Any], Any]
Payload = bytes | dict[str, Any] | Reject | None
"""A raw record: bytes of JSON, cells of a table, None for a tombstone, or why it was rejected unread."""


@dataclass(slots=True)
class LineCount:
    """Where the physical lines of an input went: `read = header + blank + continued + one line per record`."""

    read: int = 0
    header: int = 0
    blank: int = 0
    continued: int = 0

    def records(self) -> int:
        """Return how many records the lines make up, published or not."""
        return self.read - self.header - self.blank - self.continued


class Coded(Sequence[Any]):
    """A column whose different values are held once: row i has `values[codes[i]]`.

    >>> list(Coded(["f", "m"], np.array([1, 0, 1])))
    ['m', 'f', 'm']
    """

    __slots__ = ("codes", "values")

    def __init__(self, values: list[Any], codes: Ints) -> None:
        self.values, self.codes = values, codes

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.objects().tolist())

    def __getitem__(self, place: Any) -> Any:
        return self.values[self.codes[place]]

    def objects(self) -> npt.NDArray[np.object_]:
        """Return the values of all rows; equal ones are one object."""
        return np.fromiter(self.values, object, len(self.values))[self.codes]


class Columnar(ABC, Sequence[Payload]):
    """Payloads that are also known by column, so that each different value of a column is looked at once.

    `strict`: cells count as they would in JSON; else numbers are parsed from text, and an empty cell is missing.
    """

    strict: ClassVar[bool] = False

    @abstractmethod
    def column(self, name: str) -> Coded | None:
        """Return the cells of a column as a reader of rows would see them; None if they are known by row only."""


class Columns(NamedTuple):
    """The declared fields of the records that could be read, a column per name, and why the others could not.

    `kept` are the places of the former in the input, in their order.
    """

    kept: Ints
    values: Mapping[str, Sequence[Any]]
    refused: dict[int, Rejection]


class Reader(Protocol):
    """The interface of a reader of records: bytes in, declared fields out."""

    def columns(self, payloads: Sequence[Payload]) -> Columns:
        """Read the declared fields of records; undeclared ones go no further."""


class Decoder:
    """A reader of the declared fields, nested ones by dotted path. A field that is absent or null reads as None.

    >>> decoder = Decoder({"age": "integer", "address.zip": "category"})
    >>> row = decoder.decode(b'{"age": 39, "address": {"zip": "02139", "street": "Elm"}, "name": "Ann"}')
    >>> [get(row) for get in decoder.getters.values()]
    [39, '02139']
    >>> decoder.decode(b'{"age": "old"}')
    (<Reject.WRONG_TYPE: 'wrong_type'>, 'age')
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = dict(types)
        self._names = frozenset(types)
        self._struct = _struct([(name.split("."), _TYPES[kind]) for name, kind in types.items()])
        self._json = msgspec.json.Decoder(self._struct)
        self.getters: dict[str, Getter] = {name: _getter(self._struct, name.split(".")) for name in types}

    def decode(self, payload: Payload) -> Any:
        """Return the row of one record, or why there is none: a (code, column) pair."""
        if isinstance(payload, dict):
            return self.convert(payload)
        if not isinstance(payload, bytes):
            return payload or Reject.TOMBSTONE, ""
        try:
            return self._json.decode(payload)
        except msgspec.ValidationError as error:
            return self._refusal(error) if _is_json(payload) else (Reject.NOT_JSON, "")
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return Reject.REGISTRY_FRAMING if payload.startswith(b"\x00") else Reject.NOT_JSON, ""

    def columns(self, payloads: Sequence[Payload]) -> Columns:
        """Read the declared fields of records; one by one only if some of them cannot be read."""
        if isinstance(payloads, Columnar) and (found := self._by_column(payloads)) is not None:
            return found
        decode, kept = self._json.decode, np.arange(len(payloads))
        refused: dict[int, Rejection] = {}
        try:
            rows: list[Any] = list(map(decode, payloads))  # type: ignore[arg-type]
        except (TypeError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            rows = [self.decode(payload) for payload in payloads]
            refused = {i: Rejection(i, *row) for i, row in enumerate(rows) if type(row) is tuple}
            kept = np.delete(kept, list(refused))
            rows = [rows[i] for i in kept.tolist()]
        return Columns(kept, {name: list(map(get, rows)) for name, get in self.getters.items()}, refused)

    def _by_column(self, rows: Columnar) -> Columns | None:
        """Convert each different value of a column once; rows with a wrong one are read as rows, to be told alike."""
        columns = {name: rows.column(name) for name in self._types}
        wrong, refused = np.zeros(len(rows), dtype=np.bool_), {}
        converted: dict[str, Sequence[Any]] = {}
        for name, column in columns.items():
            if column is None:
                return None
            values, failed = _converted(column.values, self._types[name], rows.strict)
            converted[name] = Coded(values, column.codes)
            if failed:
                wrong |= np.isin(column.codes, failed)
        kept = np.flatnonzero(~wrong)
        if len(kept) < len(rows):
            for i in np.flatnonzero(wrong).tolist():
                row = self.decode(rows[i])
                if type(row) is not tuple:  # no value of it is wrong, so the columns must not be trusted
                    return None
                refused[i] = Rejection(i, *row)
            converted = {name: Coded(c.values, c.codes[kept]) for name, c in converted.items() if isinstance(c, Coded)}
        return Columns(kept, converted, refused)

    def convert(self, cells: Mapping[str, Any]) -> Any:
        """Return the row of a table line: numbers are parsed from text, an empty cell is missing."""
        nested: dict[str, Any] = {}
        for name in self._names:
            cell = _cell(cells, name)
            if cell is not None and cell != "":
                *parents, last = name.split(".")
                place = nested
                for parent in parents:
                    place = place.setdefault(parent, {})
                place[last] = cell
        try:
            return msgspec.convert(nested, self._struct, strict=False)
        except msgspec.ValidationError as error:
            return self._refusal(error)

    def _refusal(self, error: msgspec.ValidationError) -> tuple[Reject, str]:
        match = _PATH.search(str(error))
        if match is None:
            return Reject.NOT_OBJECT, ""
        path = match["path"]
        declared = path in self._names or any(name.startswith(path + ".") for name in self._names)
        return Reject.WRONG_TYPE, path if declared else ""


def _converted(values: list[Any], kind: str, strict: bool) -> tuple[list[Any], list[int]]:
    """Return cells of a table as values of a kind, and the places of those that are none."""
    if set(map(type, values)) <= _AS_THEY_ARE[kind] and (strict or "" not in values):
        return values, []
    found: list[Any] = []
    failed: list[int] = []
    for place, value in enumerate(values):
        try:
            found.append(_as_in_json(value, kind) if strict else _as_in_a_table(value, kind))
        except msgspec.ValidationError:
            found.append(None)
            failed.append(place)
    return found, failed


def _as_in_json(value: Any, kind: str) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value), type=_TYPES[kind])


def _as_in_a_table(value: Any, kind: str) -> Any:
    return None if value == "" else msgspec.convert(value, _TYPES[kind], strict=False)


def _cell(cells: Mapping[str, Any], name: str) -> Any:
    """Return the cell of a column, or a field inside one by dotted path; None if there is none."""
    if name in cells or "." not in name:
        return cells.get(name)
    first, _, rest = name.partition(".")
    inside = cells.get(first)
    return _cell(inside, rest) if isinstance(inside, Mapping) else None


def _is_json(payload: bytes) -> bool:
    """Tell whether all of a payload is JSON, of which a decoder saw no more than the first wrong value."""
    try:
        msgspec.json.decode(payload)
    except (msgspec.ValidationError, RecursionError):  # a number too large, or deeper than can be read
        return True
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _struct(fields: Iterable[tuple[list[str], Any]]) -> type[msgspec.Struct]:
    """Build a struct with the given paths; its fields have names of their own, so that any JSON key may be declared."""
    flat: dict[str, Any] = {}
    nested: dict[str, list[tuple[list[str], Any]]] = {}
    for path, kind in fields:
        if len(path) == 1:
            flat[path[0]] = kind
        else:
            nested.setdefault(path[0], []).append((path[1:], kind))
    kinds = flat | {key: _struct(below) | None for key, below in nested.items()}
    names = {f"f{i}": key for i, key in enumerate(kinds)}
    return msgspec.defstruct(
        "Row", [(f"f{i}", kind, None) for i, kind in enumerate(kinds.values())], rename=names, gc=False
    )


def _getter(struct: Any, path: list[str]) -> Getter:
    """Return a function from a row to the value at the path, None where any part of the path is missing."""
    steps: list[str] = []
    for key in path:
        [field] = [f for f in msgspec.structs.fields(struct) if f.encode_name == key]
        steps.append(field.name)
        below = field.type.__args__[0] if hasattr(field.type, "__args__") else None
        struct = below

    def get(row: Any) -> Any:
        for step in steps:
            if row is None:
                return None
            row = getattr(row, step)
        return row

    if len(steps) == 1:
        return attrgetter(steps[0])
    return get
