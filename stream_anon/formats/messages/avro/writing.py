"""Write groups as messages in Avro, with a schema derived from the policy."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

from stream_anon.core.hierarchy.tree import text_of
from stream_anon.core.record_template import Envelope
from stream_anon.core.schema import Schema as PolicySchema
from stream_anon.formats.messages.framing import frame
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
from stream_anon.formats.messages.varint import signed

_NULL, _THERE = signed(0), signed(1)  # the place of a value's type in the union of null and that type
_DOUBLE = struct.Struct("<d").pack
_SCALAR = ["null", "boolean", "long", "double", "string"]
_KIND: dict[Holds, str] = {"text": "string", "whole": "long", "real": "double", "whole_range": "long"}
_KIND["real_range"] = "double"


def output_schema(schema: PolicySchema) -> Schema:
    """Return the schema of a policy's records, derived from the policy alone.

    Names that Avro does not allow are spelled with underscores; the field's `doc` has the name of the policy.
    """
    shape = shape_of(schema)
    names = _Names()
    fields = _fields(shape, names)
    told: list[dict[str, Any]] = [
        {"name": name, "type": ["null", "long"] if name == "subjects" else _KIND[holds]}
        for name, holds in ENVELOPE_FIELDS
    ]
    fields.append({"name": ENVELOPE, "type": {"type": "record", "name": names.take("Anon"), "fields": told}})
    record = {"type": "record", "name": names.take(shape.name), "namespace": "stream_anon", "fields": fields}
    return Schema("AVRO", json.dumps(record, ensure_ascii=False))


class AvroWriter(GroupWriter):
    """A writer of groups as messages under one number of the schema."""

    kind = "AVRO"

    def __init__(self, schema: PolicySchema, schema_id: int) -> None:
        super().__init__(schema, frame(schema_id))
        self._policy = _text(schema.template.policy)

    def writes(self, shape: Branch) -> Mapping[int, Write]:
        """Return how each leaf is written, by its source."""
        return {leaf.source: _WRITE[leaf.holds] for leaf in shape.leaves()}

    def joined(self, shape: Branch, cells: Mapping[int, Column]) -> list[Column]:
        """Return the columns of a record in their order: records inside records need nothing around them."""
        return [cells[leaf.source] for leaf in shape.leaves()]

    def envelope(self, envelope: Envelope) -> list[Column]:
        """Return the columns of `_anon`."""
        before = self._policy + _text(envelope.group)
        after = signed(envelope.size) + _whole(envelope.subjects) + _DOUBLE(envelope.loss)
        return [repeat(before), map(signed, range(envelope.first, envelope.size)), repeat(after)]


class _Names:
    """Names of records, each of which may stand for one thing only."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        name = legal(wanted)
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def _fields(branch: Branch, names: _Names) -> list[dict[str, Any]]:
    refuse_equal_names(branch)
    return [_field(below, names) for below in branch.fields]


def _field(place: Leaf | Branch, names: _Names) -> dict[str, Any]:
    found: dict[str, Any] = {"name": legal(place.name)}
    if found["name"] != place.name:
        found["doc"] = place.name
    if isinstance(place, Branch):
        record = {"type": "record", "name": names.take(place.name), "fields": _fields(place, names)}
        return found | {"type": record}
    if place.holds == "texts":
        return found | {"type": {"type": "array", "items": "string"}}
    if place.holds in ("scalar", "scalars"):
        union: list[Any] = [*_SCALAR, *([{"type": "array", "items": _SCALAR}] if place.holds == "scalars" else [])]
        return found | {"type": union, "default": None}
    if place.holds in ("whole_range", "real_range"):
        ends = [{"name": end, "type": ["null", _KIND[place.holds]], "default": None} for end in ("low", "high")]
        record = {"type": "record", "name": names.take(f"{place.name}_range"), "fields": ends}
        return found | {"type": ["null", record], "default": None}
    return found | {"type": ["null", _KIND[place.holds]], "default": None}


@lru_cache(maxsize=16_384)  # of texts alone: 0.0 and -0.0 are equal, and not the same
def _text(text: str) -> bytes:
    data = text.encode()
    return signed(len(data)) + data


def _category(value: Any) -> bytes:
    return _NULL if value is None else _THERE + _text(value if type(value) is str else text_of(value))


def _whole(value: int | None) -> bytes:
    return _NULL if value is None else _THERE + signed(value)


def _real(value: float | None) -> bytes:
    return _NULL if value is None else _THERE + _DOUBLE(value)


def _range(end: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def write(ends: Sequence[Any] | None) -> bytes:
        return _NULL if ends is None else _THERE + end(ends[0]) + end(ends[1])

    return write


def _array(items: Sequence[bytes]) -> bytes:
    return b"".join([signed(len(items)), *items, _NULL]) if items else _NULL


def _texts(values: Sequence[str]) -> bytes:
    return _array([_text(value) for value in values])


def _scalar(value: Any) -> bytes:
    if value is None:
        return _NULL
    if type(value) is bool:
        return signed(1) + (b"\x01" if value else b"\x00")
    if type(value) is int:
        return signed(2) + signed(value)
    if type(value) is float:
        return signed(3) + _DOUBLE(value)
    return signed(4) + _text(value)


def _scalars(value: Any) -> bytes:
    return signed(5) + _array([_scalar(each) for each in value]) if isinstance(value, list) else _scalar(value)


_WRITE: dict[Holds, Callable[[Any], bytes]] = {
    "text": _category,
    "whole": _whole,
    "real": _real,
    "whole_range": _range(_whole),
    "real_range": _range(_real),
    "texts": _texts,
    "scalar": _scalar,
    "scalars": _scalars,
}
