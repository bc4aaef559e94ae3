"""Strict JSON structures of a record: a field more, a field less or one of another type is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from stream_anon.auditor.policy import Rules
from stream_anon.auditor.reading.chunks import ENVELOPE, FACTS

Kinds = dict[str, Any]


def label_kinds(rules: Rules) -> Kinds:
    """Return the JSON type of each quasi-identifier's labels."""
    return {name: scale.label_type for name, scale in rules.quasi.items()}


def own_kinds(rules: Rules) -> Kinds:
    """Return the JSON type of every field that is published unchanged."""
    scalar = str | int | float | bool | None
    plain = {name: scalar | list[scalar] if name in rules.lists else scalar for name in rules.plain}
    return dict.fromkeys(rules.sensitive, scalar) | plain


def is_compound(value: Any, lists: bool) -> bool:
    """Tell whether a value can hold fields of its own: an object, or a list where the policy allows none.

    >>> is_compound({"ssn": 1}, True), is_compound([1], False), is_compound([1], True), is_compound([[1]], True)
    (True, True, False, True)
    """
    if lists and isinstance(value, list | tuple):
        return any(isinstance(item, list | tuple | dict) for item in value)
    return isinstance(value, list | tuple | dict)


def envelope_kinds() -> Kinds:
    """Return the JSON type of each fact of the envelope, by dotted names."""
    return {f"{ENVELOPE}.{fact}": kind for fact, kind in FACTS.items()}


class Form:
    """A reader of many JSON objects at once, with the declared fields by dotted name and, if strict, no others.

    >>> form = Form({"age": int, "home.zip": str})
    >>> [list(column) for column in form.columns([b'{"age":3,"home":{"zip":"9"}}'])]
    [[3], ['9']]
    >>> form.columns([b'{"age":3,"age":4,"home":{"zip":"9"}}']) is None
    True
    """

    def __init__(self, kinds: Kinds, strict: bool = True) -> None:
        structure, self._keys = _structure(_nested(kinds), strict)
        self._strict = strict
        self._decode = msgspec.json.Decoder(list[structure]).decode  # type: ignore[valid-type]
        self._get: list[Callable[[Any], Any]] = [attrgetter(_path(structure, name.split("."))) for name in kinds]

    def columns(self, texts: Sequence[bytes]) -> list[list[Any]] | None:
        """Return the fields column by column, or None if any object is not exactly as declared.

        A field that stands twice in an object would hide one of its values: the keys of the text are counted.
        """
        joined = b",".join(texts)
        try:
            rows = self._decode(b"[" + joined + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if len(rows) != len(texts) or (self._strict and joined.count(b'":') != self._keys * len(texts)):
            return None
        return [list(map(get, rows)) for get in self._get]


def _nested(kinds: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, kind in kinds.items():
        *parents, last = name.split(".")
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = kind
    return tree


def _structure(tree: dict[str, Any], strict: bool) -> tuple[type[msgspec.Struct], int]:
    """Return a struct type whose fields f0, f1, ... are named as in the tree, and how many keys a record of it has."""
    fields, keys = [], len(tree)
    for i, kind in enumerate(tree.values()):
        if isinstance(kind, dict):
            kind, below = _structure(kind, strict=True)
            keys += below
        fields.append((f"f{i}", kind))
    names = {f"f{i}": name for i, name in enumerate(tree)}
    made = msgspec.defstruct("Record", fields, rename=names, forbid_unknown_fields=strict, gc=False)
    return made, keys


def _path(structure: Any, path: list[str]) -> str:
    [found] = [f for f in msgspec.structs.fields(structure) if f.encode_name == path[0]]
    return found.name if len(path) == 1 else f"{found.name}.{_path(found.type, path[1:])}"
