"""A registry in memory, and what tests of reading messages say of a visit."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro

from stream_anon.core.decode import Columns, Payload
from stream_anon.formats.messages.avro.reading import avro_messages
from stream_anon.formats.messages.framing import frame
from stream_anon.formats.messages.protobuf.reading import ProtoMessages
from stream_anon.formats.messages.reader import Compile, JsonMessages, MessageReader
from stream_anon.formats.messages.registry import RegistryAwayError, Schema

TYPES = {
    "who": "identifier",
    "age": "integer",
    "home.zip": "category",
    "pay": "number",
    "ill": "category",
    "at": "timestamp",
}
COMPILERS: Mapping[str, Compile] = {
    "AVRO": avro_messages,
    "PROTOBUF": ProtoMessages,
    "JSON": lambda schema, types: JsonMessages(types),
}


class Shelf:
    """A registry in memory: schemas by number, or none while it is away."""

    def __init__(self, *schemas: Schema) -> None:
        self.schemas, self.away, self.asked = list(schemas), False, 0

    def schema(self, number: int) -> Schema | None:
        self.asked += 1
        if self.away:
            raise RegistryAwayError("away")
        return self.schemas[number] if number < len(self.schemas) else None


def reader(shelf: Shelf, types: Mapping[str, str] = TYPES, plain: bool = True) -> MessageReader:
    return MessageReader(types, shelf, COMPILERS, plain, clock=lambda: 0.0)  # type: ignore[arg-type]


def read(shelf: Shelf, payloads: Sequence[Payload], types: Mapping[str, str] = TYPES) -> Columns:
    made = reader(shelf, types)
    for _ in range(200):
        try:
            return made.columns(payloads)
        except RegistryAwayError:
            assert not shelf.away
    raise AssertionError("the schemas were never fetched")


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Visit", "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


HOME = {"type": "record", "name": "Home", "fields": [field("zip", "string")]}
BASE = [field("who", "string"), field("age", "int"), field("home", HOME), field("ill", "string")]
ROW = {"who": "p1", "age": 41, "home": {"zip": "021"}, "ill": "flu"}


def avro(schema: Any, value: Any, number: int = 0) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return frame(number) + out.getvalue()


def first(columns: Columns) -> dict[str, Any]:
    return {name: values[0] for name, values in columns.values.items()}
