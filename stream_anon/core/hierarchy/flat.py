"""The simplest tree: named values below one root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from stream_anon.core.hierarchy.base import Leaves
from stream_anon.core.hierarchy.settings import HierarchySettings, repeated
from stream_anon.core.hierarchy.tree import Node, Tree
from stream_anon.errors import Problem


class FlatHierarchy(HierarchySettings):
    """Named values that become `*` when they differ."""

    named_nodes = True

    kind: Literal["flat"]
    values: list[str] = Field(min_length=1)

    def build(self, folder: Path, leaves: Leaves) -> Tree:
        """Return a tree of one level."""
        return Tree(Node("*", tuple(Node(value) for value in self.values)), leaves)

    def rules(self, type_: str) -> Iterator[Problem]:
        """Yield values that are listed twice."""
        yield from repeated("values", self.values)
