"""Write groups as messages of a binary format: a field at a time, so that what a group shares is written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, ClassVar

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import ValueSet
from stream_anon.core.publish import labels_of, values_of
from stream_anon.core.record_template import Envelope
from stream_anon.core.schema import Schema as PolicySchema
from stream_anon.formats.messages.shape import Branch, Leaf, shape_of

Write = Callable[[Any], bytes]
"""Writes the value of one field; raises for a value that the field cannot hold."""

Column = Iterable[bytes]
"""A field of every record of a group; one that all of them share repeats for ever."""


class GroupWriter(ABC):
    """A writer of groups as messages that begin with `head`; the format says how a field is written and fields joined.

    Bytes are a function of the members, the policy, its secret and the number of the schema.
    """

    kind: ClassVar[str]

    def __init__(self, schema: PolicySchema, head: bytes) -> None:
        self._head, self._schema = head, schema
        self._shape = shape_of(schema)
        self._leaves = list(self._shape.leaves())
        self._shared = len(schema.quasi)
        self._writes: Mapping[int, Write] = self.writes(self._shape)
        self._label: Callable[[int, int, int], bytes] = lru_cache(maxsize=8192)(self._make_label)

    @abstractmethod
    def writes(self, shape: Branch) -> Mapping[int, Write]:
        """Return how each leaf is written, by its source."""

    @abstractmethod
    def joined(self, shape: Branch, cells: Mapping[int, Column]) -> list[Column]:
        """Return the columns of a record in their order, given those of its leaves by source."""

    @abstractmethod
    def envelope(self, envelope: Envelope) -> list[Column]:
        """Return the columns of `_anon`, at least one of which has an end."""

    def write(self, groups: Sequence[Group]) -> Iterator[list[bytes]]:
        """Write the records of each group."""
        for group in groups:
            values = values_of(group).T.tolist()
            cells = {leaf.source: self._cells(leaf, group, values) for leaf in self._leaves}
            told = self.envelope(group.released.envelope(group.place))
            yield list(map(b"".join, zip(repeat(self._head), *self.joined(self._shape, cells), *told, strict=False)))

    def writable(self, values: Sequence[Any]) -> bool:
        """Tell whether the published values of one row can be written."""
        try:
            for source, write in self._writes.items():
                if source >= self._shared:
                    write(values[source - self._shared])
        except Exception:  # whatever it is: the row cannot leave
            return False
        return True

    def _cells(self, leaf: Leaf, group: Group, values: Sequence[Sequence[Any]]) -> Column:
        q = leaf.source
        if q >= self._shared:
            return map(self._writes[q], values[q - self._shared])
        if isinstance(self._schema.quasi[q].hierarchy, ValueSet):
            return repeat(self._writes[q](labels_of(group)[q]))
        released, place = group.released, group.place
        return repeat(self._label(q, int(released.low[place, q]), int(released.high[place, q])))

    def _make_label(self, q: int, low: int, high: int) -> bytes:
        return self._writes[q](self._schema.quasi[q].hierarchy.label(low, high))
