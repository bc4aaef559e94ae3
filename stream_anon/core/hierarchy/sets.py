"""No hierarchy: values become the set of them. Only algorithms that think in sets can use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from stream_anon.core.hierarchy.base import Ints, Leaves
from stream_anon.core.hierarchy.settings import HierarchySettings, repeated
from stream_anon.core.hierarchy.tree import Node, Tree
from stream_anon.errors import Problem


class ValueSet(Tree):
    """Named values whose generalization is exactly the values met. Stretches of positions mean nothing here.

    >>> nations = ValueSet(["China", "India", "Peru"])
    >>> nations.label_of(nations.encode(["India", "China", "India"])[0])
    ['China', 'India']
    """

    def __init__(self, values: Sequence[str], leaves: Leaves = Leaves()) -> None:  # noqa: B008
        super().__init__(Node("*", tuple(Node(value) for value in values)), leaves)

    def label_of(self, codes: Ints) -> list[str]:
        """Return the values themselves, sorted."""
        return sorted({self.labels[code] for code in codes.tolist()})

    def loss_of(self, codes: Ints) -> float:
        """Return the share of all values that the set holds; 0 for one value."""
        count = len(set(codes.tolist()))
        return count / self.size if count > 1 else 0.0

    def contains(self, label: Any, value: Any) -> bool:
        """Whether the value is in the published set."""
        codes, trouble = self.encode([value])
        members: Iterable[str] = label
        return trouble is None and self.labels[int(codes[0])] in members

    def signature(self) -> str:
        """Return a digest of the values."""
        return "set " + super().signature()


class SetHierarchy(HierarchySettings):
    """No hierarchy: different values become the set of them. For `l-clustering`."""

    kind: Literal["set"]
    values: list[str] = Field(min_length=1)

    def build(self, folder: Path, leaves: Leaves) -> ValueSet:
        """Return the sets of these values."""
        return ValueSet(self.values, leaves)

    def rules(self, type_: str) -> Iterator[Problem]:
        """Yield values that are listed twice."""
        yield from repeated("values", self.values)
