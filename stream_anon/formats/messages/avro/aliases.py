"""Find declared fields that a producer has renamed: Avro schemas keep a field's earlier names as its aliases.

What a message holds does not depend on the names of its schema, so a renamed field is given its declared name back
before the schema is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stream_anon.formats.messages.reader import UnusableSchemaError


def with_declared_names(schema: Any, paths: Iterable[str]) -> Any:
    """Return a schema in which a field has the declared name that is one of its aliases, if no other field has it.

    >>> renamed = {"type": "record", "name": "V", "fields": [{"name": "illness", "type": "int", "aliases": ["ill"]}]}
    >>> with_declared_names(renamed, ["ill"])["fields"][0]["name"]
    'ill'
    """
    return _renamed(schema, frozenset(part for path in paths for part in path.split(".")))


def _renamed(part: Any, declared: frozenset[str]) -> Any:
    if isinstance(part, list):
        return [_renamed(branch, declared) for branch in part]
    if not isinstance(part, Mapping):
        return part
    found = dict(part)
    for below in ("type", "items", "values"):
        if isinstance(found.get(below), list | Mapping):
            found[below] = _renamed(found[below], declared)
    if isinstance(found.get("fields"), list):
        found["fields"] = _fields([_renamed(field, declared) for field in found["fields"]], declared)
    return found


def _fields(fields: list[Any], declared: frozenset[str]) -> list[Any]:
    """Return the fields of a record by their declared names; two that claim one name make the schema unusable."""
    taken = {field.get("name") for field in fields}
    for field in fields:
        claimed = [name for name in field.get("aliases") or () if name in declared and name not in taken]
        if claimed and field.get("name") not in declared:
            field["name"] = claimed[0]
    names = [field.get("name") for field in fields]
    if len(set(names)) < len(names):
        raise UnusableSchemaError("two fields have one name, or one alias")
    return fields
