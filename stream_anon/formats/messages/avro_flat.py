"""Read messages in Avro column by column where the schema is a record of plain fields, in one compiled loop.

Records inside records count as their fields, for they are written one after the other. Each message is read within its
own bytes; one that does not end where its bytes end is no message of the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_anon.core.decode import Columns, Reject, Rejection
from stream_anon.core.hierarchy import Ints
from stream_anon.core.kernels import COMPILED, compiled
from stream_anon.formats.messages.values import checked

_BOOLEAN, _WHOLE, _FLOAT, _DOUBLE, _BYTES = range(5)
_KINDS = {"boolean": _BOOLEAN, "int": _WHOLE, "long": _WHOLE, "float": _FLOAT, "double": _DOUBLE, "string": _BYTES}
_LONGEST = 10  # bytes of a whole number
_NULL = -1  # the length of what is not there


class _Field(NamedTuple):
    """A plain field: its path, what it holds, the place of null in its union (-1 for none), the names of an enum."""

    path: str
    kind: int
    null: int
    symbols: tuple[str, ...] | None = None
    bits: int = 64


class FlatMessages:
    """A schema of plain fields, ready to read the declared ones."""

    def __init__(self, fields: Sequence[_Field], types: Mapping[str, str]) -> None:
        self._types = types
        self._kinds = np.array([[field.kind, field.null, field.bits] for field in fields], dtype=np.int64)
        self._places = {field.path: place for place, field in enumerate(fields)}
        self._fields = fields
        self.read([b""])  # compile now, not when the first messages wait

    def read(self, bodies: Sequence[bytes]) -> Columns:
        """Read the bodies of messages."""
        data = b"".join(bodies)
        ends = np.cumsum([0, *map(len, bodies)], dtype=np.int64)
        shape = len(bodies), len(self._fields)
        first, size = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
        good = scan(np.frombuffer(data, dtype=np.uint8), ends, self._kinds, first, size)
        kept = np.flatnonzero(good)
        refused = {int(i): Rejection(int(i), Reject.NOT_BY_SCHEMA) for i in np.flatnonzero(~good)}
        if refused:
            first, size = first[kept], size[kept]
        values: dict[str, list[Any]] = {}
        bad: dict[int, Rejection] = {}
        for name, kind in self._types.items():
            place = self._places.get(name)
            if place is None:
                values[name] = [None] * len(kept)
                continue
            column, broken = self._column(self._fields[place], data, first[:, place], size[:, place])
            values[name], wrong = checked(column, kind)
            bad |= {i: Rejection(int(kept[i]), Reject.NOT_BY_SCHEMA) for i in broken}
            for i in wrong:
                bad.setdefault(i, Rejection(int(kept[i]), Reject.WRONG_TYPE, name))
        if bad:
            refused |= {int(kept[i]): rejection for i, rejection in bad.items()}
            values = {name: [v for i, v in enumerate(column) if i not in bad] for name, column in values.items()}
            kept = np.delete(kept, list(bad))
        return Columns(kept, values, refused)

    def _column(self, field: _Field, data: bytes, first: Ints, size: Ints) -> tuple[list[Any], list[int]]:
        """Return the values of a field, and the places of messages that hold none of its type."""
        there, broken = size != _NULL, np.zeros(len(first), dtype=np.bool_)
        column: list[Any]
        if field.kind == _BYTES:
            ends = zip(first.tolist(), (first + size).tolist(), strict=True)
            try:
                column = [data[a:b].decode() if b >= a else None for a, b in ends]
            except UnicodeDecodeError:
                column, broken = _texts(data, first, size)
        elif field.kind == _FLOAT:
            column = first.astype(np.uint32).view(np.float32).tolist()
        elif field.kind == _DOUBLE:
            column = first.view(np.float64).tolist()
        elif field.kind == _BOOLEAN:
            column = first.astype(np.bool_).tolist()
        elif field.symbols is not None:
            broken = there & ((first < 0) | (first >= len(field.symbols)))
            column = [field.symbols[i] for i in np.where(broken | ~there, 0, first).tolist()]
        else:
            column = first.tolist()
        if not there.all():
            column = [value if here else None for value, here in zip(column, there.tolist(), strict=True)]
        return column, np.flatnonzero(broken).tolist()


def _texts(data: bytes, first: Ints, size: Ints) -> tuple[list[Any], npt.NDArray[np.bool_]]:
    column: list[Any] = []
    broken = np.zeros(len(first), dtype=np.bool_)
    for i, (start, length) in enumerate(zip(first.tolist(), size.tolist(), strict=True)):
        try:
            column.append(data[start : start + length].decode() if length != _NULL else None)
        except UnicodeDecodeError:
            column.append(None)
            broken[i] = True
    return column, broken


def flat_fields(schema: Any) -> list[_Field] | None:
    """Return the fields of a schema of plain fields, None if it has others, or if loops are not compiled here."""
    found: list[_Field] = []
    return found if COMPILED and _collect(schema, "", found) and found else None


def _collect(record: Any, before: str, found: list[_Field]) -> bool:
    if not isinstance(record, dict) or record.get("type") != "record":
        return False
    return all(_add(each["type"], before + each["name"], found) for each in record["fields"])


def _add(kind: Any, path: str, found: list[_Field]) -> bool:
    null = -1
    if isinstance(kind, list):
        others = [each for each in kind if each != "null"]
        if len(kind) != 2 or len(others) != 1:
            return False
        null, kind = kind.index("null"), others[0]
    if isinstance(kind, dict) and kind.get("type") == "record":
        return null < 0 and _collect(kind, f"{path}.", found)
    if isinstance(kind, dict) and kind.get("type") == "enum":
        found.append(_Field(path, _WHOLE, null, tuple(kind["symbols"]), 32))
        return True
    if isinstance(kind, dict):
        if "logicalType" in kind:
            return False
        kind = kind.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        return False
    found.append(_Field(path, _KINDS[kind], null, bits=32 if kind == "int" else 64))
    return True


@compiled
def scan(data: npt.NDArray[np.uint8], ends: Ints, kinds: Ints, first: Ints, size: Ints) -> npt.NDArray[np.bool_]:
    """Find every field of every message; return which messages are whole.

    `first` is a number, the bits of a fraction, or where a text begins; `size` is its length in bytes.
    """
    count = len(ends) - 1
    good = np.zeros(count, dtype=np.bool_)
    for i in range(count):
        at, end = ends[i], ends[i + 1]
        fine = True
        for f in range(len(kinds)):
            kind, null, bits = kinds[f, 0], kinds[f, 1], kinds[f, 2]
            if null >= 0:
                branch, at = _whole(data, at, end)
                if at < 0 or branch < 0 or branch > 1:
                    fine = False
                    break
                if branch == null:
                    first[i, f], size[i, f] = 0, _NULL
                    continue
            if kind == _WHOLE:
                number, at = _whole(data, at, end)
                if at < 0 or (bits == 32 and (number < -(1 << 31) or number >= 1 << 31)):
                    fine = False
                    break
                first[i, f], size[i, f] = number, 0
            elif kind == _BYTES:
                length, at = _whole(data, at, end)
                if at < 0 or length < 0 or length > end - at:
                    fine = False
                    break
                first[i, f], size[i, f] = at, length
                at += length
            elif kind == _BOOLEAN:
                if at >= end or data[at] > 1:
                    fine = False
                    break
                first[i, f], size[i, f] = data[at], 1
                at += 1
            else:
                width = 4 if kind == _FLOAT else 8
                if end - at < width:
                    fine = False
                    break
                found = np.uint64(0)
                for b in range(width):
                    found |= np.uint64(data[at + b]) << np.uint64(8 * b)
                first[i, f], size[i, f] = np.int64(found), width
                at += width
        good[i] = fine and at == end
    return good


@compiled
def _whole(data: npt.NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """Return the whole number at a place and the place after it, -1 if there is none."""
    found = np.uint64(0)
    for place in range(_LONGEST):
        if at + place >= end:
            return 0, -1
        byte = data[at + place]
        if place == _LONGEST - 1 and byte > 1:
            return 0, -1
        found |= np.uint64(byte & 127) << np.uint64(7 * place)
        if byte < 128:
            half = int(np.int64(found >> np.uint64(1)))
            return (-half - 1 if found & np.uint64(1) else half), at + place + 1
    return 0, -1
