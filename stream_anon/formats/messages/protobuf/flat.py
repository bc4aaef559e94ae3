"""Find the fields of Protobuf messages that hold nothing but plain fields, in one compiled loop.

What the loop finds is what Protobuf's own library would find; where the two could differ (groups of fields, numbers of
more bits than there are) the message is left to the library.
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
    RAW,
    TEXT,
    UNSIGNED,
    WHOLE,
    Bools,
    FlatColumns,
    FoundFields,
    PlainField,
    joined,
)

_VARINT, _EIGHT, _BLOCK, _FOUR = 0, 1, 2, 5  # how the bytes of a field are delimited
_AS_IT_IS, _ZIGZAG, _TRUTH = 0, 1, 2  # what the bits of a variable number mean
_LONGEST = 10  # bytes of a whole number
_HIGHEST = 4096  # number of a field that is looked up in a table


class _Field(NamedTuple):
    """A plain field: its number, how it is written, and whether it can be absent."""

    plain: PlainField
    number: int
    wire: int
    bits: int
    meaning: int
    presence: bool


class FlatProto:
    """A message of plain fields, ready to read the declared ones."""

    def __init__(self, fields: Sequence[_Field], types: Mapping[str, str]) -> None:
        self._columns = FlatColumns([field.plain for field in fields], types)
        self._facts = np.array([[f.wire, f.bits, f.meaning, f.plain.kind == TEXT] for f in fields], dtype=np.int64)
        self._where = np.full(_HIGHEST, -1, dtype=np.int64)
        self._where[[field.number for field in fields]] = np.arange(len(fields))
        self._sizes = np.array([ABSENT if field.presence else 0 for field in fields], dtype=np.int64)
        self._unread = [i for i, f in enumerate(fields) if f.plain.kind == TEXT and f.plain.path not in types]
        self.read([b""])  # compile now, not when the first messages wait

    def read(self, bodies: Sequence[bytes]) -> Columns | None:
        """Read the bodies of messages; None if one of them needs the library."""
        data, numbers, ends = joined(bodies)
        found = FoundFields.room(len(bodies), len(self._facts))
        found.first[:], found.size[:] = 0, self._sizes
        high = np.zeros(found.first.shape, dtype=np.bool_)
        if not scan(numbers, ends, self._where, self._facts, *found, high):
            return None
        for place in self._unread:  # texts that nobody declared: they must be texts all the same
            for i in np.flatnonzero(high[:, place] & found.good):
                at = int(found.first[i, place])
                found.good[i] &= _is_text(data[at : at + int(found.size[i, place])])
        return self._columns.columns(data, found)


def flat_fields(descriptor: Any) -> list[_Field] | None:
    """Return the fields of a message of plain fields, None if it has others, or if loops are not compiled here."""
    found: list[_Field] = []
    for field in descriptor.fields if COMPILED else ():
        kind = _kind(field)
        alone = field.containing_oneof is None or len(field.containing_oneof.fields) == 1
        if kind is None or not alone or field.number >= _HIGHEST:
            return None
        symbols = None
        if field.type == field.TYPE_ENUM:
            if field.enum_type.is_closed:
                return None
            symbols = {value.number: value.name for value in reversed(field.enum_type.values)}
        holds, wire, bits, meaning = kind
        plain = PlainField(field.name, holds, symbols, closed=False)
        found.append(_Field(plain, field.number, wire, bits, meaning, field.has_presence))
    return found or None


def _kind(field: Any) -> tuple[int, int, int, int] | None:
    """Return what a field holds, how it is delimited, its bits and their meaning; None if it is not a plain one."""
    if _repeated(field) or _required(field):
        return None
    return {
        field.TYPE_INT32: (WHOLE, _VARINT, 32, _AS_IT_IS),
        field.TYPE_INT64: (WHOLE, _VARINT, 64, _AS_IT_IS),
        field.TYPE_UINT32: (UNSIGNED, _VARINT, -32, _AS_IT_IS),
        field.TYPE_UINT64: (UNSIGNED, _VARINT, 64, _AS_IT_IS),
        field.TYPE_SINT32: (WHOLE, _VARINT, 32, _ZIGZAG),
        field.TYPE_SINT64: (WHOLE, _VARINT, 64, _ZIGZAG),
        field.TYPE_BOOL: (BOOLEAN, _VARINT, 64, _TRUTH),
        field.TYPE_ENUM: (WHOLE, _VARINT, 32, _AS_IT_IS),
        field.TYPE_FIXED32: (UNSIGNED, _FOUR, -32, _AS_IT_IS),
        field.TYPE_SFIXED32: (WHOLE, _FOUR, 32, _AS_IT_IS),
        field.TYPE_FLOAT: (FLOAT, _FOUR, -32, _AS_IT_IS),
        field.TYPE_FIXED64: (UNSIGNED, _EIGHT, 64, _AS_IT_IS),
        field.TYPE_SFIXED64: (WHOLE, _EIGHT, 64, _AS_IT_IS),
        field.TYPE_DOUBLE: (DOUBLE, _EIGHT, 64, _AS_IT_IS),
        field.TYPE_STRING: (TEXT, _BLOCK, 64, _AS_IT_IS),
        field.TYPE_BYTES: (RAW, _BLOCK, 64, _AS_IT_IS),
    }.get(field.type)


def _repeated(field: Any) -> bool:
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


def _required(field: Any) -> bool:
    return bool(field.is_required if hasattr(field, "is_required") else field.label == field.LABEL_REQUIRED)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@compiled
def scan(
    data: npt.NDArray[np.uint8], ends: Ints, where: Ints, facts: Ints, first: Ints, size: Ints, good: Bools, high: Bools
) -> bool:
    """Find every field of every message, and which messages are whole; return false if one needs the library.

    Of a field that is there twice the last one counts, as the library has it; unknown ones are passed over. `high` says
    which texts have bytes that are not ASCII.
    """
    for i in range(len(ends) - 1):
        at, end = ends[i], ends[i + 1]
        fine = True
        while at < end:
            tag, at = _varint(data, at, end)
            number, wire = tag >> np.uint64(3), np.int64(tag & np.uint64(7))
            if at < 0 or number == 0 or tag > np.uint64(0xFFFFFFFF):
                if at == -2 or tag > np.uint64(0xFFFFFFFF):
                    return False
                fine = False
                break
            f = where[np.int64(number)] if number < np.uint64(_HIGHEST) else -1
            if f >= 0 and facts[f, 0] != wire:
                f = -1  # written as another kind: unknown
            if wire == _VARINT:
                found, at = _varint(data, at, end)
                if at < 0:
                    if at == -2:
                        return False
                    fine = False
                    break
                if f >= 0:
                    first[i, f], size[i, f] = _meant(found, facts[f, 1], facts[f, 2]), 0
            elif wire == _BLOCK:
                length, at = _varint(data, at, end)
                if at == -2:
                    return False
                if at < 0 or length > np.uint64(end - at):
                    fine = False
                    break
                if f >= 0:
                    first[i, f], size[i, f] = at, np.int64(length)
                    if high[i, f]:
                        return False  # the library looks at every text, not only at the last one
                    odd = False
                    if facts[f, 3]:
                        for b in range(at, at + np.int64(length)):
                            odd |= data[b] > 127
                    high[i, f] = odd
                at += np.int64(length)
            elif wire in (_EIGHT, _FOUR):
                width = 8 if wire == _EIGHT else 4
                if end - at < width:
                    fine = False
                    break
                found = np.uint64(0)
                for b in range(width):
                    found |= np.uint64(data[at + b]) << np.uint64(8 * b)
                if f >= 0:
                    first[i, f], size[i, f] = _meant(found, facts[f, 1], facts[f, 2]), 0
                at += width
            else:
                return False
        good[i] = fine
    return True


@compiled
def _varint(data: npt.NDArray[np.uint8], at: int, end: int) -> tuple[np.uint64, int]:
    """Return the bits at a place and the place after them, -1 if they do not end, -2 if there are too many."""
    found = np.uint64(0)
    for place in range(_LONGEST):
        if at + place >= end:
            return found, -1
        byte = data[at + place]
        if place == _LONGEST - 1 and byte > 1:
            return found, -2
        found |= np.uint64(byte & 127) << np.uint64(7 * place)
        if byte < 128:
            return found, at + place + 1
    return found, -2


@compiled
def _meant(found: np.uint64, bits: int, meaning: int) -> np.int64:
    """Return the number that some bits mean; of 32 bits (unsigned: -32) only the low ones count."""
    if meaning == _TRUTH:
        return np.int64(found != 0)
    if bits != 64:
        found = found & np.uint64(0xFFFFFFFF)
    if meaning == _ZIGZAG:
        half = np.int64(found >> np.uint64(1))
        return np.int64(-half - 1) if found & np.uint64(1) else half
    if bits == 32 and found > np.uint64(0x7FFFFFFF):
        return np.int64(found) - np.int64(1 << 32)
    return np.int64(found)
