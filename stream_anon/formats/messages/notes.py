"""What a schema says about its fields beside their types: tags and descriptions, by dotted path.

Tags are those of Confluent's data contracts: `confluent:tags` in Avro and JSON Schema, `(confluent.field_meta).tags` in
Protobuf, and `metadata.tags` of the registry, whose paths may have wildcards. Descriptions are `doc` in Avro,
`description` in JSON Schema and comments in Protobuf.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from stream_anon.formats.messages.protobuf.schemas import described_fields
from stream_anon.formats.messages.registry import Schema

_DEEPEST = 20
_TAGS = "confluent:tags"


@dataclass(frozen=True, slots=True)
class FieldNote:
    """What is said of one field."""

    tags: frozenset[str] = frozenset()
    text: str = ""


def notes_of(schema: Schema) -> dict[str, FieldNote]:
    """Return what a schema, and what the registry knows of it, says about fields, by dotted path."""
    try:
        match schema.kind:
            case "AVRO":
                found = dict(_avro(json.loads(schema.text), "", _named(schema.references), 0))
            case "JSON":
                found = dict(_json_schema(json.loads(schema.text), "", 0))
            case _:
                found = {path: FieldNote(frozenset(tags), text) for path, tags, text in described_fields(schema)}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        found = {}  # it cannot be read as a schema: then it says nothing
    for pattern, tags in schema.tags:
        for path, note in found.items():
            if _matches(path, pattern):
                found[path] = replace(note, tags=note.tags | frozenset(tags))
    return found


def _matches(path: str, pattern: str) -> bool:
    """Tell whether a path is meant: `**.ssn` by its end, `*` for any name, with or without the record's name before.

    >>> _matches("home.ssn", "**.ssn"), _matches("ssn", "Customer.ssn"), _matches("id", "Customer.ssn")
    (True, True, False)
    """
    bare = pattern.removeprefix("**.")
    return (
        fnmatchcase(path, bare)
        or fnmatchcase(path, bare.partition(".")[2] or bare)
        or (bare != pattern and fnmatchcase(path, f"*.{bare}"))
    )


def _named(references: Sequence[tuple[str, str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in references:
        found[name] = json.loads(text)
    return found


def _avro(kind: Any, path: str, named: dict[str, Any], depth: int) -> Iterator[tuple[str, FieldNote]]:
    if depth > _DEEPEST:
        return
    if isinstance(kind, list):
        for branch in kind:
            yield from _avro(branch, path, named, depth + 1)
    elif isinstance(kind, str) and kind in named:
        yield from _avro(named[kind], path, named, depth + 1)
    elif isinstance(kind, Mapping):
        if kind.get("name") and kind.get("type") in ("record", "enum", "fixed"):
            named.setdefault(str(kind["name"]), kind)
        for field in kind.get("fields") or ():
            at = f"{path}{field['name']}"
            yield at, FieldNote(_texts(field.get(_TAGS)) | _of_type(field["type"]), str(field.get("doc") or ""))
            yield from _avro(field["type"], f"{at}.", named, depth + 1)
        if isinstance(kind.get("type"), Mapping | list):
            yield from _avro(kind["type"], path, named, depth + 1)


def _of_type(kind: Any) -> frozenset[str]:
    """Return the tags of a field's type itself, which some tools write there."""
    branches = kind if isinstance(kind, list) else [kind]
    return frozenset().union(*(_texts(b.get(_TAGS)) for b in branches if isinstance(b, Mapping)))


def _json_schema(node: Any, path: str, depth: int) -> Iterator[tuple[str, FieldNote]]:
    if not isinstance(node, Mapping) or depth > _DEEPEST:
        return
    for name, below in (node.get("properties") or {}).items():
        if isinstance(below, Mapping):
            text = below.get("description") or below.get("title") or ""
            yield f"{path}{name}", FieldNote(_texts(below.get(_TAGS)), str(text))
            yield from _json_schema(below, f"{path}{name}.", depth + 1)
    for word in ("oneOf", "anyOf", "allOf"):
        for below in node.get(word) or ():
            yield from _json_schema(below, path, depth + 1)


def _texts(value: Any) -> frozenset[str]:
    found = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return frozenset(str(each) for each in found)
