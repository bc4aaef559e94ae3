"""Read whole messages as plain records, with all their fields: for looking at a topic, not for running on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from stream_anon.core.decode import Reject
from stream_anon.formats.messages.avro.reading import AvroMessages
from stream_anon.formats.messages.framing import HEAD, MAGIC, schema_id_of
from stream_anon.formats.messages.notes import FieldNote, notes_of
from stream_anon.formats.messages.protobuf.reading import ProtoMessages, plain_message
from stream_anon.formats.messages.reader import UnusableSchemaError
from stream_anon.formats.messages.registry import Registry, RegistryError, Schema
from stream_anon.formats.messages.values import plain_record

_Reader = AvroMessages | ProtoMessages | None
_FORMATS = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_schema"}


class WholeMessages:
    """A reader of messages that counts their formats and collects what their schemas say about fields."""

    def __init__(self, registry: Registry | None) -> None:
        self._registry = registry
        self._schemas: dict[bytes, tuple[Schema, _Reader] | Reject] = {}
        self.notes: dict[str, FieldNote] = {}
        self.formats: Counter[str] = Counter()

    @property
    def format(self) -> str:
        """The format of the messages, `auto` if there are several."""
        return next(iter(self.formats)) if len(self.formats) == 1 else "auto"

    def record(self, payload: bytes | None) -> Mapping[str, Any] | Reject:
        """Return all fields of a message, or why it cannot be read."""
        if payload is None:
            return Reject.TOMBSTONE
        if not payload.startswith(MAGIC) or self._registry is None:
            found = _json(payload)
            self.formats["json"] += not isinstance(found, Reject)
            return found
        head, body = payload[:HEAD], payload[HEAD:]
        if head not in self._schemas:
            self._schemas[head] = self._fetch(head, self._registry)
        known = self._schemas[head]
        if isinstance(known, Reject):
            return known
        schema, reader = known
        row = _json(body) if reader is None else reader.row(body)
        if isinstance(row, Reject):
            return row
        self.formats[_FORMATS[schema.kind]] += 1
        found = plain_message(row) if isinstance(reader, ProtoMessages) else plain_record(row)
        return found if isinstance(found, dict) else Reject.NOT_OBJECT

    def _fetch(self, head: bytes, registry: Registry) -> tuple[Schema, _Reader] | Reject:
        try:
            schema = registry.schema(schema_id_of(head)) if len(head) == HEAD else None
            if schema is None:
                return Reject.UNKNOWN_SCHEMA
            made: _Reader = None
            if schema.kind != "JSON":
                made = AvroMessages(schema, {}) if schema.kind == "AVRO" else ProtoMessages(schema, {})
        except (UnusableSchemaError, RegistryError):
            return Reject.UNUSABLE_SCHEMA
        self.take_notes(schema)
        return schema, made

    def take_notes(self, schema: Schema) -> None:
        """Take what a schema says about fields; of two schemas, both."""
        for path, note in notes_of(schema).items():
            before = self.notes.get(path, FieldNote())
            self.notes[path] = FieldNote(before.tags | note.tags, before.text or note.text)


def _json(payload: bytes) -> Mapping[str, Any] | Reject:
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Reject.REGISTRY_FRAMING if payload.startswith(MAGIC) else Reject.NOT_JSON
    return found if isinstance(found, dict) else Reject.NOT_OBJECT
