"""Read messages in Avro by fastavro, where it is installed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from stream_anon.core.decode import Columns, Reject
from stream_anon.errors import StreamAnonError
from stream_anon.formats.messages.avro.aliases import with_declared_names
from stream_anon.formats.messages.avro.flat import FlatMessages, flat_fields
from stream_anon.formats.messages.reader import UnusableSchemaError, columns_of
from stream_anon.formats.messages.registry import Schema
from stream_anon.formats.messages.values import path_getter

_WIDTH = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1, "enum": 1}
"""Bytes that a value takes at the least."""


class AvroMessages:
    """A schema of Avro, ready to read the declared fields of its messages; nested ones by dotted path.

    Numbers of other widths, enums, decimals, dates, instants and UUIDs become what JSON would hold; fields that are
    absent from the schema, or null, are missing. A field that was renamed is found by its alias.
    """

    def __init__(self, schema: Schema, types: Mapping[str, str]) -> None:
        avro = fastavro()
        self._types = types
        self._read = avro.schemaless_reader
        try:
            named: dict[str, Any] = {}
            for _, text in schema.references:
                avro.parse_schema(with_declared_names(json.loads(text), types), named)
            self.schema = avro.parse_schema(with_declared_names(json.loads(schema.text), types), named)
            for part in [self.schema, *named.values()]:
                _refuse_bombs(part, named)
        except UnusableSchemaError:
            raise
        except Exception as error:  # whatever a library makes of a hostile schema
            raise UnusableSchemaError(type(error).__name__) from None
        self._getters = {name: path_getter(name.split(".")) for name in types}

    def read(self, bodies: Sequence[bytes]) -> Columns:
        """Read the bodies of messages."""
        return columns_of([self.row(body) for body in bodies], self._types, self._getters)

    def row(self, body: bytes) -> Any:
        """Read one message with all its fields; return the code of a rejection if it cannot be read."""
        file = BytesIO(body)
        try:
            row = self._read(file, self.schema, None)
        except Exception:  # whatever a library makes of hostile bytes
            return Reject.NOT_BY_SCHEMA
        if file.tell() != len(body):
            return Reject.NOT_BY_SCHEMA
        return row if isinstance(row, dict) else Reject.NOT_OBJECT


def avro_messages(schema: Schema, types: Mapping[str, str]) -> AvroMessages | FlatMessages:
    """Make a schema ready: column by column if all its fields are plain, message by message otherwise."""
    made = AvroMessages(schema, types)
    fields = flat_fields(made.schema)
    if fields is None or any(field.path.startswith(f"{name}.") for field in fields for name in types):
        return made
    return FlatMessages(fields, types)


def _refuse_bombs(part: Any, named: Mapping[str, Any]) -> None:
    """Raise for arrays whose items may take no bytes: a message of a few bytes could hold a billion of them."""
    if isinstance(part, list):
        for branch in part:
            _refuse_bombs(branch, named)
    elif isinstance(part, dict):
        if part.get("type") == "array" and _least(part["items"], named, ()) == 0:
            raise UnusableSchemaError("an array of items without bytes")
        for below in ("type", "items", "values"):
            if isinstance(part.get(below), dict | list):
                _refuse_bombs(part[below], named)
        for each in part.get("fields", ()):
            _refuse_bombs(each["type"], named)


def _least(part: Any, named: Mapping[str, Any], inside: tuple[str, ...]) -> int:
    """Return the bytes that a value takes at the least; 0 where a type holds itself and so has no end."""
    if isinstance(part, list):
        return 1
    if isinstance(part, str):
        if part in named and part not in inside:
            return _least(named[part], named, (*inside, part))
        return _WIDTH.get(part, 0)
    kind = part.get("type")
    if kind == "record":
        return sum(_least(each["type"], named, inside) for each in part["fields"])
    if kind == "fixed":
        return int(part["size"])
    if kind in ("array", "map"):
        return 1
    return _least(kind, named, inside)


def fastavro() -> Any:
    """Import the library that reads Avro."""
    try:
        import fastavro
    except ImportError:
        raise StreamAnonError("Avro needs fastavro: pip install 'stream-anon[avro]'") from None
    return fastavro
