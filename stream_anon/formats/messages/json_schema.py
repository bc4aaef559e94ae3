"""Write groups as messages of a JSON schema: JSON behind the framing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from stream_anon.core.gate import Group
from stream_anon.core.publish import encode_all
from stream_anon.core.record_template import writable
from stream_anon.core.schema import Schema as PolicySchema
from stream_anon.formats.messages.framing import frame
from stream_anon.formats.messages.registry import Schema
from stream_anon.formats.messages.shape import ENVELOPE, ENVELOPE_FIELDS, Branch, Holds, Leaf, shape_of

_SCALAR = {"type": ["null", "boolean", "number", "string"]}
_TYPE: dict[Holds, dict[str, Any]] = {
    "text": {"type": ["null", "string", "integer", "boolean"]},
    "whole": {"type": ["null", "integer", "string"]},
    "real": {"type": ["null", "number", "string"]},
    "whole_range": {"type": ["null", "array"], "items": {"type": ["null", "integer"]}, "minItems": 2, "maxItems": 2},
    "real_range": {"type": ["null", "array"], "items": {"type": ["null", "number"]}, "minItems": 2, "maxItems": 2},
    "texts": {"type": "array", "items": {"type": "string"}},
    "scalar": _SCALAR,
    "scalars": {"type": ["null", "boolean", "number", "string", "array"], "items": _SCALAR},
}
_TOLD = {"text": "string", "whole": "integer", "real": "number"}


def output_schema(schema: PolicySchema) -> Schema:
    """Return the schema of a policy's records, derived from the policy alone."""
    told = {name: {"type": _TOLD[holds]} for name, holds in ENVELOPE_FIELDS if name != "subjects"}
    envelope = _object(told | {"subjects": {"type": ["null", "integer"]}})
    root = _properties(shape_of(schema)) | {ENVELOPE: envelope}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": schema.policy.name}
    return Schema("JSON", json.dumps(head | _object(root), ensure_ascii=False))


class JsonSchemaWriter:
    """A writer of groups as messages under one number of the schema."""

    kind = "JSON"

    def __init__(self, schema: PolicySchema, schema_id: int) -> None:
        self._head = frame(schema_id)

    def write(self, groups: Sequence[Group]) -> Iterator[list[bytes]]:
        """Write the records of each group."""
        for records in encode_all(groups):
            yield [self._head + record for record in records]

    def writable(self, values: Sequence[Any]) -> bool:
        """Tell whether the published values of one row can be written."""
        return writable(values)


def _properties(branch: Branch) -> dict[str, Any]:
    return {
        below.name: _TYPE[below.holds] if isinstance(below, Leaf) else _object(_properties(below))
        for below in branch.fields
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
