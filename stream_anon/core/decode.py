"""Decode the bytes of a record into the fields a policy declares, and no others; other records are rejected by code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from stream_anon.core.hierarchy import Ints

_PATH = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_CATEGORY = str | int | bool | None
_TYPES: dict[str, Any] = {
    "category": _CATEGORY,
    "integer": int | None,
    "number": float | None,
    "timestamp": str | int | float | None,
    "any": Any,
    "identifier": str | int | float | bool | None,
    "psf": int | None,
    "label": str | None,
}


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


class Columns(NamedTuple):
    """The declared fields of the records that could be read, as a list per name, and why the others could not.

    `kept` are the places of the former in the input, in their order.
    """

    kept: Ints
    values: Mapping[str, list[Any]]
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
