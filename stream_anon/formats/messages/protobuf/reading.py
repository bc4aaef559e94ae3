"""Read messages in Protobuf by its own library, where it is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stream_anon.core.decode import Columns, Reject
from stream_anon.formats.messages.framing import read_path
from stream_anon.formats.messages.protobuf.flat import FlatProto, flat_fields
from stream_anon.formats.messages.protobuf.schemas import ProtoSchema
from stream_anon.formats.messages.reader import UnusableSchemaError, columns_of
from stream_anon.formats.messages.registry import Schema
from stream_anon.formats.messages.values import Getter

_WRAPPED = frozenset(f"google.protobuf.{kind}Value" for kind in ("Double", "Float", "Int64", "UInt64", "Int32"))
_WRAPPED |= frozenset(f"google.protobuf.{kind}Value" for kind in ("UInt32", "Bool", "String", "Bytes"))


class ProtoMessages:
    """A schema of Protobuf, ready to read the declared fields of its messages; nested ones by dotted path.

    Enums are read by name, instants (`google.protobuf.Timestamp`) as text, wrapped values as what they wrap. A field
    that can be absent, and is, is missing; one that cannot has its default value.
    """

    def __init__(self, schema: Schema, types: Mapping[str, str]) -> None:
        self._types = types
        try:
            self._schema = ProtoSchema(schema)
        except UnusableSchemaError:
            raise
        except (TypeError, KeyError, ValueError) as error:
            raise UnusableSchemaError(type(error).__name__) from None
        self._getters: dict[str, Getter] = {name: _getter(name.split(".")) for name in types}
        self._flat: dict[tuple[int, ...], FlatProto | None] = {}
        self._read_flat([])  # compile now, not when the first messages wait

    def read(self, bodies: Sequence[bytes]) -> Columns:
        """Read the bodies of messages: all at once if their fields are plain, one by one otherwise."""
        return self._read_flat(bodies) or columns_of([self.row(body) for body in bodies], self._types, self._getters)

    def _read_flat(self, bodies: Sequence[bytes]) -> Columns | None:
        """Read messages of one kind that holds plain fields; None if these are others."""
        try:
            path, at = read_path(bodies[0], 0) if bodies else ((0,), 1)
            before = bodies[0][:at] if bodies else b""
            if path not in self._flat:
                fields = flat_fields(self._schema.message(path).DESCRIPTOR)
                self._flat[path] = None if fields is None else FlatProto(fields, self._types)
        except (LookupError, ValueError):
            return None
        flat = self._flat[path]
        if flat is None or not all(body.startswith(before) for body in bodies):
            return None
        return flat.read([body[at:] for body in bodies])

    def row(self, body: bytes) -> Any:
        """Read one message with all its fields; return the code of a rejection if it cannot be read."""
        try:
            path, at = read_path(body, 0)
            message = self._schema.message(path)()
            message.ParseFromString(body[at:])
        except LookupError:
            return Reject.UNKNOWN_SCHEMA
        except Exception:  # whatever a library makes of hostile bytes
            return Reject.NOT_BY_SCHEMA
        return message


def _getter(path: Sequence[str]) -> Getter:
    def get(message: Any) -> Any:
        for place, name in enumerate(path):
            if isinstance(message, Mapping):
                message = message.get(name)
            elif (field := message.DESCRIPTOR.fields_by_name.get(name)) is None or (
                field.has_presence and not message.HasField(name)
            ):
                return None
            else:
                message = _value(getattr(message, name), field)
            if message is None or (place < len(path) - 1 and not _holds_more(message)):
                return None
        return message

    return get


def plain_message(message: Any) -> dict[str, Any]:
    """Return a message as plain data: what is absent not at all, maps and lists as such."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = _value(getattr(message, field.name), field)
        if hasattr(value, "DESCRIPTOR"):
            value = plain_message(value)
        elif isinstance(value, Mapping):
            value = {str(key): plain_message(v) if hasattr(v, "DESCRIPTOR") else v for key, v in value.items()}
        elif isinstance(value, list):
            value = [plain_message(each) if hasattr(each, "DESCRIPTOR") else each for each in value]
        if not isinstance(value, bytes):
            found[field.name] = value
    return found


def _holds_more(value: Any) -> bool:
    return hasattr(value, "DESCRIPTOR") or isinstance(value, Mapping)


def _value(value: Any, field: Any) -> Any:
    if field.type == field.TYPE_ENUM and isinstance(value, int):
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if field.type == field.TYPE_MESSAGE and hasattr(value, "DESCRIPTOR"):
        full = value.DESCRIPTOR.full_name
        if full == "google.protobuf.Timestamp":
            return value.ToJsonString()
        if full in _WRAPPED:
            return value.value
        return value
    if isinstance(value, str | int | float | bool | bytes | Mapping):
        return value
    return list(value)
