"""Write groups as messages in Protobuf, with a schema derived from the policy."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from stream_anon.core.hierarchy.tree import text_of
from stream_anon.core.record_template import Envelope
from stream_anon.core.schema import Schema as PolicySchema
from stream_anon.formats.messages.framing import frame, path_bytes
from stream_anon.formats.messages.group_writer import Column, GroupWriter, Write
from stream_anon.formats.messages.registry import Schema
from stream_anon.formats.messages.shape import (
    ENVELOPE,
    ENVELOPE_FIELDS,
    Branch,
    Holds,
    Leaf,
    legal,
    refuse_equal_names,
    shape_of,
)
from stream_anon.formats.messages.varint import unsigned

_TYPE: dict[Holds, str] = {
    "text": "optional string",
    "whole": "optional int64",
    "real": "optional double",
    "whole_range": "optional WholeRange",
    "real_range": "optional RealRange",
    "texts": "repeated string",
    "scalar": "optional Scalar",
    "scalars": "repeated Scalar",
}
_PARTS = """
message Anon {
%s
}

message WholeRange {
  optional int64 low = 1;
  optional int64 high = 2;
}

message RealRange {
  optional double low = 1;
  optional double high = 2;
}

message Scalar {
  oneof kind {
    bool boolean = 1;
    int64 integer = 2;
    double number = 3;
    string text = 4;
  }
}
"""


def output_schema(schema: PolicySchema) -> Schema:
    """Return the schema of a policy's records, derived from the policy alone; the record is the first message."""
    shape = shape_of(schema)
    told = "\n".join(f"  {_TYPE[holds]} {name} = {i};" for i, (name, holds) in enumerate(ENVELOPE_FIELDS, 1))
    lines = _message(shape, f"Record_{legal(shape.name)}", 0, f"  Anon {ENVELOPE} = {len(shape.fields) + 1};")
    text = 'syntax = "proto3";\n\npackage stream_anon;\n\n' + "\n".join(lines) + "\n" + _PARTS % told
    return Schema("PROTOBUF", text)


class ProtoWriter(GroupWriter):
    """A writer of groups as messages under one number of the schema.

    The bytes are those of Protobuf's own library: fields by number, and what is null not at all.
    """

    kind = "PROTOBUF"

    def __init__(self, schema: PolicySchema, schema_id: int) -> None:
        super().__init__(schema, frame(schema_id) + path_bytes((0,)))
        self._tag = _tag(len(self._shape.fields) + 1, _BLOCK)
        self._policy = _write("text", _PLACES["policy"])(schema.template.policy)

    def writes(self, shape: Branch) -> Mapping[int, Write]:
        """Return how each leaf is written, by its source."""
        found: dict[int, Write] = {}
        for number, below in enumerate(shape.fields, 1):
            if isinstance(below, Branch):
                found |= self.writes(below)
            else:
                found[below.source] = _write(below.holds, number)
        return found

    def joined(self, shape: Branch, cells: Mapping[int, Column]) -> list[Column]:
        """Return the columns of a record in their order; messages inside it have their length before them."""
        return [
            cells[below.source] if isinstance(below, Leaf) else _inside(number, self.joined(below, cells))
            for number, below in enumerate(shape.fields, 1)
        ]

    def envelope(self, envelope: Envelope) -> list[Column]:
        """Return the columns of `_anon`."""
        told = {"size": envelope.size, "subjects": envelope.subjects, "loss": envelope.loss}
        before = self._policy + _write("text", _PLACES["group"])(envelope.group)
        after = b"".join(_write(_HOLDS[name], _PLACES[name])(value) for name, value in told.items())
        fixed, tag = len(before) + len(after), self._tag
        rows = map(_write("whole", _PLACES["row"]), range(envelope.first, envelope.size))
        return [[b"".join((tag, unsigned(fixed + len(row)), before, row, after)) for row in rows]]


def _message(branch: Branch, name: str, depth: int, last: str = "") -> list[str]:
    """Return the lines of a message; messages that it holds stand inside it."""
    refuse_equal_names(branch)
    space = "  " * depth
    lines = [f"{space}message {name} {{"]
    for number, below in enumerate(branch.fields, 1):
        field = legal(below.name)
        if isinstance(below, Branch):
            lines += _message(below, f"Part{number}_{field}", depth + 1)
            lines.append(f"{space}  optional Part{number}_{field} {field} = {number};")
        else:
            lines.append(f"{space}  {_TYPE[below.holds]} {field} = {number};")
    return [*lines, *([last] if last else []), f"{space}}}"]


_VARINT, _EIGHT_BYTES, _BLOCK = 0, 1, 2  # how the bytes of a field are delimited
_DOUBLE = struct.Struct("<d").pack
_HOLDS: dict[str, Holds] = dict(ENVELOPE_FIELDS)
_PLACES = {name: number for number, name in enumerate(_HOLDS, 1)}
_OF_SCALAR = {bool: 1, int: 2, float: 3, str: 4}


def _tag(number: int, wire: int) -> bytes:
    return unsigned(number << 3 | wire)


def _inside(number: int, columns: list[Column]) -> Column:
    """Return messages inside others: the joined fields of each, behind their length."""
    tag = _tag(number, _BLOCK)
    return (tag + unsigned(len(found)) + found for found in map(b"".join, zip(*columns, strict=False)))


@lru_cache(maxsize=1024)
def _write(holds: Holds, number: int) -> Write:
    """Return how a field of this number is written."""
    match holds:
        case "text":
            return _text_at(_tag(number, _BLOCK))
        case "whole":
            return _whole_at(_tag(number, _VARINT))
        case "real":
            tag = _tag(number, _EIGHT_BYTES)
            return lambda value: b"" if value is None else tag + _DOUBLE(value)
        case "whole_range" | "real_range":
            end: Holds = "whole" if holds == "whole_range" else "real"
            low, high, around = _write(end, 1), _write(end, 2), _tag(number, _BLOCK)
            return lambda ends: b"" if ends is None else _block(around, low(ends[0]) + high(ends[1]))
        case "texts":
            text = _text_at(_tag(number, _BLOCK))
            return lambda values: b"".join(map(text, values or ()))
        case "scalar":
            tag = _tag(number, _BLOCK)
            return lambda value: b"" if value is None else _block(tag, _scalar(value))
        case "scalars":
            one = _write("scalar", number)
            empty = _block(_tag(number, _BLOCK), b"")
            return lambda found: b"".join([one(v) or empty for v in found]) if isinstance(found, list) else one(found)


def _text_at(tag: bytes) -> Write:
    @lru_cache(maxsize=4096)  # of texts alone: 1 and True are equal, and not the same
    def text(value: str) -> bytes:
        return _block(tag, value.encode())

    return lambda value: b"" if value is None else text(value if type(value) is str else text_of(value))


def _whole_at(tag: bytes) -> Write:
    def write(value: int | None) -> bytes:
        if value is None:
            return b""
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError("a number of more than 64 bits")
        return tag + unsigned(value & (1 << 64) - 1)

    return write


def _block(tag: bytes, content: bytes) -> bytes:
    return tag + unsigned(len(content)) + content


def _scalar(value: Any) -> bytes:
    """Return what a message of one scalar holds, nothing for null."""
    if value is None:
        return b""
    place = _OF_SCALAR[type(value)]
    if type(value) is bool:
        return _tag(place, _VARINT) + (b"\x01" if value else b"\x00")
    holds: tuple[Holds, ...] = ("whole", "real", "text")
    return _write(holds[place - 2], place)(value)
