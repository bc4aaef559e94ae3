"""Read messages of plain fields column by column: a compiled loop finds every field, columns are made at once.

What finds the fields knows the format; what makes columns of them is here, for all formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stream_anon.core.decode import Columns, Reject, Rejection
from stream_anon.core.hierarchy import Ints
from stream_anon.formats.messages.values import checked

BOOLEAN, WHOLE, UNSIGNED, FLOAT, DOUBLE, TEXT, RAW = range(7)
"""What a field holds. A text or raw bytes are found as a place and a length, all others as their bits."""

ABSENT = -1
"""The length of what is not there."""

Bools = npt.NDArray[np.bool_]


class FoundFields(NamedTuple):
    """Where every field of every message is: a row a message, a column a field.

    `first` is a number, the bits of a fraction, or where a text begins; `size` is its length in bytes. `good` says
    which messages are whole.
    """

    first: Ints
    size: Ints
    good: Bools

    @classmethod
    def room(cls, messages: int, fields: int) -> FoundFields:
        """Return room for the fields of so many messages."""
        shape = messages, fields
        return cls(np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64), np.zeros(messages, dtype=np.bool_))


class PlainField(NamedTuple):
    """A plain field: its path, what it holds, and for an enum the names by number.

    `closed`: an enum has no other numbers; a message with another one is no message of the schema.
    """

    path: str
    kind: int
    symbols: Mapping[int, str] | None = None
    closed: bool = True


class FlatColumns:
    """What makes columns of the declared fields among those that were found."""

    def __init__(self, fields: Sequence[PlainField], types: Mapping[str, str]) -> None:
        self._fields, self._types = fields, types
        self._places = {field.path: place for place, field in enumerate(fields)}

    def columns(self, data: bytes, found: FoundFields) -> Columns:
        """Return the declared fields of messages that lie one behind the other in `data`."""
        first, size, good = found
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
            column, broken = _column(self._fields[place], data, first[:, place], size[:, place])
            values[name], wrong = checked(column, kind)
            bad |= {i: Rejection(int(kept[i]), Reject.NOT_BY_SCHEMA) for i in broken}
            for i in wrong:
                bad.setdefault(i, Rejection(int(kept[i]), Reject.WRONG_TYPE, name))
        if bad:
            refused |= {int(kept[i]): rejection for i, rejection in bad.items()}
            values = {name: [v for i, v in enumerate(column) if i not in bad] for name, column in values.items()}
            kept = np.delete(kept, list(bad))
        return Columns(kept, values, refused)


def _column(field: PlainField, data: bytes, first: Ints, size: Ints) -> tuple[list[Any], list[int]]:
    """Return the values of a field, and the places of messages that hold none of its type."""
    there, broken = size != ABSENT, np.zeros(len(first), dtype=np.bool_)
    column: list[Any]
    if field.kind in (TEXT, RAW):
        ends = zip(first.tolist(), (first + size).tolist(), strict=True)
        try:
            column = [(data[a:b].decode() if field.kind == TEXT else data[a:b]) if b >= a else None for a, b in ends]
        except UnicodeDecodeError:
            column, broken = _texts(data, first, size)
    elif field.kind == FLOAT:
        column = first.astype(np.uint32).view(np.float32).tolist()
    elif field.kind == DOUBLE:
        column = first.view(np.float64).tolist()
    elif field.kind == BOOLEAN:
        column = first.astype(np.bool_).tolist()
    elif field.kind == UNSIGNED:
        column = first.view(np.uint64).tolist()
    else:
        column = first.tolist()
    if field.symbols is not None:
        symbols = field.symbols
        if field.closed:
            broken = there & np.array([number not in symbols for number in column], dtype=np.bool_)
        column = [symbols.get(number, number) for number in column]
    if not there.all():
        column = [value if here else None for value, here in zip(column, there.tolist(), strict=True)]
    return column, np.flatnonzero(broken).tolist()


def _texts(data: bytes, first: Ints, size: Ints) -> tuple[list[Any], Bools]:
    column: list[Any] = []
    broken = np.zeros(len(first), dtype=np.bool_)
    for i, (start, length) in enumerate(zip(first.tolist(), size.tolist(), strict=True)):
        try:
            column.append(data[start : start + length].decode() if length != ABSENT else None)
        except UnicodeDecodeError:
            column.append(None)
            broken[i] = True
    return column, broken


def joined(bodies: Sequence[bytes]) -> tuple[bytes, npt.NDArray[np.uint8], Ints]:
    """Return messages one behind the other, as bytes and as numbers, and where each of them ends."""
    data = b"".join(bodies)
    return data, np.frombuffer(data, dtype=np.uint8), np.cumsum([0, *map(len, bodies)], dtype=np.int64)
