"""Find the fields of Avro messages whose schema is a record of plain fields, in one compiled loop.

Records inside records count as their fields, for they are written one after the other. Each message is read within its
own bytes; one that does not end where its bytes end is no message of the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_anon.core.decode import Columns
from stream_anon.core.hierarchy import Ints
from stream_anon.core.kernels import COMPILED, compiled
from stream_anon.formats.messages.flat import (
    ABSENT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    TEXT,
    WHOLE,
    Bools,
    FlatColumns,
    FoundFields,
    PlainField,
    joined,
)

_KINDS = {"boolean": BOOLEAN, "int": WHOLE, "long": WHOLE, "float": FLOAT, "double": DOUBLE, "string": TEXT}
_LONGEST = 10  # bytes of a whole number


class _Field(NamedTuple):
    """A plain field, the place of null in its union (-1 for none), and the bits of a whole number."""

    plain: PlainField
    null: int
    bits: int = 64

    @property
    def path(self) -> str:
        """The dotted path of the field."""
        return self.plain.path


class FlatMessages:
    """A schema of plain fields, ready to read the declared ones."""

    def __init__(self, fields: Sequence[_Field], types: Mapping[str, str]) -> None:
        self._kinds = np.array([[field.plain.kind, field.null, field.bits] for field in fields], dtype=np.int64)
        self._columns = FlatColumns([field.plain for field in fields], types)
        self.read([b""])  # compile now, not when the first messages wait

    def read(self, bodies: Sequence[bytes]) -> Columns:
        """Read the bodies of messages."""
        data, numbers, ends = joined(bodies)
        found = FoundFields.room(len(bodies), len(self._kinds))
        scan(numbers, ends, self._kinds, *found)
        return self._columns.columns(data, found)


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
        found.append(_Field(PlainField(path, WHOLE, dict(enumerate(kind["symbols"]))), null, 32))
        return True
    if isinstance(kind, dict):
        if "logicalType" in kind:
            return False
        kind = kind.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        return False
    found.append(_Field(PlainField(path, _KINDS[kind]), null, 32 if kind == "int" else 64))
    return True


@compiled
def scan(data: npt.NDArray[np.uint8], ends: Ints, kinds: Ints, first: Ints, size: Ints, good: Bools) -> None:
    """Find every field of every message, and which messages are whole."""
    for i in range(len(ends) - 1):
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
                    first[i, f], size[i, f] = 0, ABSENT
                    continue
            if kind == WHOLE:
                number, at = _whole(data, at, end)
                if at < 0 or (bits == 32 and (number < -(1 << 31) or number >= 1 << 31)):
                    fine = False
                    break
                first[i, f], size[i, f] = number, 0
            elif kind == TEXT:
                length, at = _whole(data, at, end)
                if at < 0 or length < 0 or length > end - at:
                    fine = False
                    break
                first[i, f], size[i, f] = at, length
                at += length
            elif kind == BOOLEAN:
                if at >= end or data[at] > 1:
                    fine = False
                    break
                first[i, f], size[i, f] = data[at], 1
                at += 1
            else:
                width = 4 if kind == FLOAT else 8
                if end - at < width:
                    fine = False
                    break
                found = np.uint64(0)
                for b in range(width):
                    found |= np.uint64(data[at + b]) << np.uint64(8 * b)
                first[i, f], size[i, f] = np.int64(found), width
                at += width
        good[i] = fine and at == end


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
