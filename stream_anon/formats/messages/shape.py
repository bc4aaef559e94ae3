"""The shape of a published record, derived from the policy alone: what each field holds, nested as in the record.

Every format that has schemas writes its own from this one: an interval is a pair of ends, never a union of a number and
a range; a category is text; a set is a list of texts. Any field may be null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from stream_anon.core.fields import ChangeSettings
from stream_anon.core.hierarchy import Interval, ValueSet
from stream_anon.core.record_template import ENVELOPE
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError

Holds = Literal["text", "whole", "real", "whole_range", "real_range", "texts", "scalar", "scalars"]
_BY_TYPE: dict[str, Holds] = {"integer": "whole", "number": "real"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field with a value. `source` is the place of its value among quasi-identifiers and published columns."""

    name: str
    holds: Holds
    source: int


@dataclass(slots=True)
class Branch:
    """A field that holds others."""

    name: str
    fields: list[Leaf | Branch] = field(default_factory=list)

    def leaves(self) -> Iterator[Leaf]:
        """Yield the leaves below, in the order of the record."""
        for below in self.fields:
            if isinstance(below, Leaf):
                yield below
            else:
                yield from below.leaves()


ENVELOPE_FIELDS: tuple[tuple[str, Holds], ...] = (
    ("policy", "text"),
    ("group", "text"),
    ("row", "whole"),
    ("size", "whole"),
    ("subjects", "whole"),
    ("loss", "real"),
)
"""What `_anon` holds. `subjects` alone may be null, where the policy names no subject."""


def shape_of(schema: Schema) -> Branch:
    """Return the shape of a policy's records, without the envelope, which is the last field."""
    root = Branch(schema.policy.name)
    places = [(column.name, _of_quasi(column.type, column.hierarchy)) for column in schema.quasi]
    types = {column.name: column.type for column in schema.sensitive}
    types |= {column.name: "category" for column in schema.sensitive if column.hierarchy}  # raised values are labels
    for name in schema.published:
        loose: Holds = "scalars" if name in schema.lists else "scalar"
        change = schema.policy.publish(name)
        if name not in types and isinstance(change, ChangeSettings):
            loose = change.holds
        places.append((name, _BY_TYPE.get(types[name], "text") if name in types else loose))
    for source, (name, holds) in enumerate(places):
        *parents, last = name.split(".")
        place = root
        for parent in parents:
            place = _branch(place, parent)
        place.fields.append(Leaf(last, holds, source))
    return root


def legal(name: str) -> str:
    """Return a name that schemas allow.

    >>> legal("birth-year"), legal("1st"), legal("größe")
    ('birth_year', '_1st', 'gr__e')
    """
    found = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return found if not found[:1].isdigit() else f"_{found}"


def refuse_equal_names(branch: Branch) -> None:
    """Raise if two fields of a record have the same name once they are spelled as a schema allows."""
    names = [legal(below.name).lower() for below in branch.fields]  # Protobuf also compares names without case
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise StreamAnonError(f"two attributes would share the name {min(twice)} in the schema: rename one of them")


def _of_quasi(type_: str, hierarchy: object) -> Holds:
    if isinstance(hierarchy, Interval):
        return "real_range" if type_ == "number" else "whole_range"
    return "texts" if isinstance(hierarchy, ValueSet) else "text"


def _branch(place: Branch, name: str) -> Branch:
    for below in place.fields:
        if isinstance(below, Branch) and below.name == name:
            return below
    made = Branch(name)
    place.fields.append(made)
    return made


__all__ = ["ENVELOPE", "ENVELOPE_FIELDS", "Branch", "Holds", "Leaf", "legal", "refuse_equal_names", "shape_of"]
