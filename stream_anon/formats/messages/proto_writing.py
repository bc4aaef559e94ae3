"""Write groups as messages in Protobuf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy.tree import text_of
from stream_anon.core.publish import labels_of, values_of
from stream_anon.core.schema import Schema as PolicySchema
from stream_anon.formats.messages.framing import frame, path_bytes
from stream_anon.formats.messages.proto_schemas import ProtoSchema
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


class ProtoWriter:
    """A writer of groups as messages under one number of the schema."""

    kind = "PROTOBUF"

    def __init__(self, schema: PolicySchema, schema_id: int) -> None:
        self._head = frame(schema_id) + path_bytes((0,))
        self._shape = shape_of(schema)
        self._class = ProtoSchema(output_schema(schema)).message((0,))
        self._policy = schema.template.policy
        self._shared = len(schema.quasi)

    def write(self, groups: Sequence[Group]) -> Iterator[list[bytes]]:
        """Write the records of each group."""
        for group in groups:
            group_id, first, size, subjects, loss = group.released.envelope(group.place)
            told = {"policy": self._policy, "group": group_id, "size": size, "subjects": subjects, "loss": loss}
            labels, records = labels_of(group), []
            for row, values in enumerate(values_of(group).tolist(), first):
                message = self._class()
                self._fill(message, self._shape, [*labels, *values])
                for name, value in (told | {"row": row}).items():
                    if value is not None:
                        setattr(getattr(message, ENVELOPE), name, value)
                records.append(self._head + message.SerializeToString(deterministic=True))
            yield records

    def writable(self, values: Sequence[Any]) -> bool:
        """Tell whether the published values of one row can be written."""
        try:
            self._fill(self._class(), self._shape, [*[None] * self._shared, *values])
        except Exception:  # whatever it is: the row cannot leave
            return False
        return True

    def _fill(self, message: Any, branch: Branch, values: Sequence[Any]) -> None:
        for below in branch.fields:
            name = legal(below.name)
            if isinstance(below, Branch):
                getattr(message, name).SetInParent()
                self._fill(getattr(message, name), below, values)
            elif (value := values[below.source]) is not None:
                _put(message, name, below, value)


def _put(message: Any, name: str, leaf: Leaf, value: Any) -> None:
    match leaf.holds:
        case "whole_range" | "real_range":
            place = getattr(message, name)
            place.SetInParent()
            for end, found in zip(("low", "high"), value, strict=True):
                if found is not None:
                    setattr(place, end, found)
        case "texts":
            getattr(message, name).extend(value)
        case "scalar":
            _scalar(getattr(message, name), value)
        case "scalars":
            for each in value if isinstance(value, list) else [value]:
                _scalar(getattr(message, name).add(), each)
        case "text":
            setattr(message, name, value if type(value) is str else text_of(value))
        case _:
            setattr(message, name, value)


def _scalar(place: Any, value: Any) -> None:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "text"}
    if value is not None:
        setattr(place, kinds[type(value)], value)


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
