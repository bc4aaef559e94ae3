"""Write groups as messages in Avro: fields one after the other, so that what a group shares is written once."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import ValueSet
from stream_anon.core.hierarchy.tree import text_of
from stream_anon.core.publish import labels_of, values_of
from stream_anon.core.schema import Schema as PolicySchema
from stream_anon.formats.messages.framing import frame
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


class AvroWriter:
    """A writer of groups as messages under one number of the schema."""

    kind = "AVRO"

    def __init__(self, schema: PolicySchema, schema_id: int) -> None:
        self._head, self._schema = frame(schema_id), schema
        self._leaves = list(shape_of(schema).leaves())
        self._policy = _text(schema.template.policy)
        self._shared = len(schema.quasi)
        self.label = lru_cache(maxsize=8192)(self._label)

    def _label(self, q: int, low: int, high: int) -> bytes:
        return _WRITE[self._holds[q]](self._schema.quasi[q].hierarchy.label(low, high))

    @property
    def _holds(self) -> dict[int, Holds]:
        return {leaf.source: leaf.holds for leaf in self._leaves}

    def write(self, groups: Sequence[Group]) -> Iterator[list[bytes]]:
        """Write the records of each group."""
        for group in groups:
            envelope = group.released.envelope(group.place)
            before = self._policy + _text(envelope.group)
            after = signed(envelope.size) + _whole(envelope.subjects) + _DOUBLE(envelope.loss)
            rows = map(signed, range(envelope.first, envelope.size))
            columns = values_of(group).T.tolist()
            cells = [self._cells(leaf, group, columns) for leaf in self._leaves]
            records = zip(repeat(self._head), *cells, repeat(before), rows, repeat(after), strict=False)
            yield list(map(b"".join, records))

    def writable(self, values: Sequence[Any]) -> bool:
        """Tell whether the published values of one row can be written."""
        try:
            for leaf in self._leaves:
                if leaf.source >= self._shared:
                    _WRITE[leaf.holds](values[leaf.source - self._shared])
        except Exception:  # whatever it is: the row cannot leave
            return False
        return True

    def _cells(self, leaf: Leaf, group: Group, columns: Sequence[Sequence[Any]]) -> Any:
        """Return a field of every record: one text again and again, or a column."""
        q = leaf.source
        if q >= self._shared:
            return map(_WRITE[leaf.holds], columns[q - self._shared])
        if isinstance(self._schema.quasi[q].hierarchy, ValueSet):
            return repeat(_texts(labels_of(group)[q]))
        released, place = group.released, group.place
        return repeat(self.label(q, int(released.low[place, q]), int(released.high[place, q])))


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
