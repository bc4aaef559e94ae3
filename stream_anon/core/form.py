"""How a published record is written: what a group's records share is made once, and each record is one object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

import msgspec

from stream_anon.core.hierarchy import Hierarchy, ValueSet

ENVELOPE = "_anon"
"""The field in which a published record tells of its group."""

_Label = Callable[[int, int], msgspec.Raw]


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """What a record tells of its group; `row` is its own."""

    policy: str
    group: str
    row: int
    size: int
    subjects: int
    loss: float


class Form:
    """Turns labels, published values and envelopes into objects that msgspec writes as records.

    Where a field stands inside another, or one name is given twice, these are dictionaries; else they are structures,
    whose names and labels are JSON already. `policy` is how the envelopes name it.
    """

    def __init__(self, quasi: Sequence[tuple[str, Hierarchy]], published: Sequence[str], policy: str) -> None:
        self.policy = policy
        self.sets = [(q, h) for q, (_, h) in enumerate(quasi) if isinstance(h, ValueSet)]
        self._names = [*(name for name, _ in quasi), *published, ENVELOPE]
        self._labels: list[_Label] = [_as_json(hierarchy) for _, hierarchy in quasi]
        self.flat = len(set(self._names)) == len(self._names) and not any("." in name for name in self._names)
        self._record = _structure(self._names) if self.flat else None

    def labels(self, low: Sequence[int], high: Sequence[int]) -> list[Any]:
        """The labels of stretches as JSON, one per quasi-identifier; those of `sets` need the values instead."""
        return [label(a, b) for label, a, b in zip(self._labels, low, high, strict=True)]

    def written(
        self, labels: Sequence[Any], columns: Sequence[Sequence[Any]], envelopes: Iterator[Envelope]
    ) -> Iterator[Any]:
        """Records: the labels of all, the columns of values, an envelope each."""
        cells = (*map(repeat, labels), *columns, envelopes)
        if self._record is not None:
            return map(self._record, *cells)
        return (self.nested(values) for values in zip(*cells, strict=False))

    def nested(self, values: Sequence[Any]) -> dict[str, Any]:
        """A record as a dictionary, with fields of dotted names inside others."""
        record: dict[str, Any] = {}
        for name, value in zip(self._names, values, strict=True):
            place, last = record, name
            if "." in name:
                *parents, last = name.split(".")
                for parent in parents:
                    place = place.setdefault(parent, {})
            place[last] = value
        return record


def _structure(names: Sequence[str]) -> Callable[..., Any]:
    fields = [f"f{i}" for i in range(len(names))]
    return msgspec.defstruct(
        "Record", [(field, Any) for field in fields], rename=dict(zip(fields, names, strict=True)), gc=False
    )


def _as_json(hierarchy: Hierarchy) -> _Label:
    @lru_cache(maxsize=4096)
    def label(low: int, high: int) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(hierarchy.label(low, high)))

    return label
