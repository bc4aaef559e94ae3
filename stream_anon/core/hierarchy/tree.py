"""Trees of named values: flat, inline or from a CSV file. Leaves are numbered in tree order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field
from typing_extensions import TypeAliasType

from stream_anon.core.hierarchy.base import CostTable, Floats, Ints, Kind, Leaves, encode_each
from stream_anon.core.hierarchy.settings import HierarchySettings
from stream_anon.errors import Problem

Counting = Literal["ncp", "leaves", "descendants", "subtree", "height"]
"""What a node costs: its share of the leaves, its leaves, the nodes below it, those and itself, its relative height."""

TABLE_LIMIT = 512
"""Largest tree priced by a square table (2 MiB of floats); above it a sparse table of maxima serves: n log n floats."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node on the way to becoming a tree: a label, and children unless it is a leaf."""

    label: str
    children: tuple[Node, ...] = ()


def branch(label: str, below: Mapping[str, Any] | Sequence[str] | None) -> Node:
    """Return the node that a nested mapping describes: leaves as lists, or a leaf alone by None."""
    if isinstance(below, Mapping):
        return Node(label, tuple(branch(child, deeper) for child, deeper in below.items()))
    return Node(label, tuple(Node(leaf) for leaf in below or ()))


class Tree:
    """A hierarchy of named values.

    Nodes are numbered with the leaves first, in tree order, then the inner nodes, children before parents; the root is
    last. `first[v]..last[v]` are the leaves below node v.

    >>> tree = Tree(branch("clothing", {"bottom": ["pants", "skirt"], "top": ["T-shirts", "shirts"]}))
    >>> codes, _ = tree.encode(["skirt", "pants"])
    >>> tree.label(min(codes), max(codes)), tree.loss(codes.min(), codes.max())
    ('bottom', array(0.5))
    """

    def __init__(self, root: Node, leaves: Leaves = Leaves(), counting: Counting = "ncp") -> None:  # noqa: B008
        self._extra = leaves
        self._root = root
        self.counting: Counting = counting
        if not root.children:
            root = Node("*", (root,))
        root = Node(root.label, root.children + tuple(Node(label) for label in leaves.labels()))
        self._number(root)
        self.size = int(self.last[-1]) + 1
        self.top = self.size - len(leaves.labels())
        self._codes = {self.labels[i]: i for i in range(self.top)}
        self.price = self._prices(counting)
        self._peaks = self._climb()
        self._table = self._square() if self.size <= TABLE_LIMIT else None
        self.label = lru_cache(maxsize=4096)(self._label)  # labels repeat; finding one climbs the tree

    def recounted(self, counting: Counting) -> Tree:
        """Return the same tree with nodes counted in another way."""
        return self if counting == self.counting else Tree(self._root, self._extra, counting)

    def _number(self, root: Node) -> None:
        order: list[tuple[Node, int]] = []  # (node, parent's place in this list), parents before children
        stack = [(root, -1)]
        while stack:
            node, parent = stack.pop()
            place = len(order)
            order.append((node, parent))
            stack.extend((child, place) for child in reversed(node.children))
        leaf_places = [i for i, (node, _) in enumerate(order) if not node.children]
        inner_places = [i for i, (node, _) in enumerate(order) if node.children][::-1]
        number = {place: v for v, place in enumerate(leaf_places + inner_places)}
        count = len(order)
        self.labels = [order[place][0].label for place in leaf_places + inner_places]
        self.parent = np.full(count, -1, dtype=np.int64)
        self.first = np.zeros(count, dtype=np.int64)
        self.last = np.zeros(count, dtype=np.int64)
        self.below = np.zeros(count, dtype=np.int64)
        leaf_count = len(leaf_places)
        self.first[:leaf_count] = self.last[:leaf_count] = np.arange(leaf_count)
        self.first[leaf_count:] = leaf_count
        for place in reversed(range(1, count)):  # children before parents
            v, p = number[place], number[order[place][1]]
            self.parent[v] = p
            self.first[p] = min(self.first[p], self.first[v])
            self.last[p] = max(self.last[p], self.last[v])
            self.below[p] += self.below[v] + 1

    def _prices(self, counting: Counting) -> Floats:
        inner = np.arange(len(self.labels)) >= self.size
        leaves = (self.last - self.first + 1).astype(np.float64)
        counts = {
            "ncp": leaves / self.size,
            "leaves": leaves,
            "descendants": self.below.astype(np.float64),
            "subtree": self.below + 1.0,
            "height": self._heights(),
        }
        return np.where(inner, counts[counting], 0.0)

    def _heights(self) -> Floats:
        """Layers between each node and the deepest leaf below it, over those of the root."""
        height = np.zeros(len(self.labels))
        for v, above in enumerate(self.parent[:-1].tolist()):  # parents have larger numbers than their children
            height[above] = max(height[above], height[v] + 1)
        return np.asarray(height / max(float(height[-1]), 1.0))

    def _climb(self) -> Floats:
        """Row j, column i: the dearest common parent of neighbours among leaves i .. i + 2^j.

        The lowest common ancestor of a stretch is the common ancestor of one pair of neighbours in it: the dearest.
        """
        pairs = np.array([self.price[self.node(i, i + 1)] for i in range(self.size - 1)] or [0.0])
        return peaks_of(pairs)

    def _square(self) -> Floats:
        pairs = self._peaks[0]
        table = np.zeros((self.size, self.size))
        for low in range(self.size - 1):
            table[low, low + 1 :] = np.maximum.accumulate(pairs[low:])
        return table + table.T

    def node(self, low: int, high: int) -> int:
        """Return the lowest common ancestor of leaves `low` and `high`."""
        v = int(low)
        while self.last[v] < high:
            v = int(self.parent[v])
        return v

    def node_on_path(self, leaf: int, label: str) -> int | None:
        """Return the highest node called `label` between leaf and root; None if no such node stands above the leaf."""
        found, v = None, leaf
        while v >= 0:
            if self.labels[v] == label:
                found = v
            v = int(self.parent[v])
        return found

    def encode(self, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Leaf numbers of the values. Numbers and booleans count by their text, as in a CSV file."""
        try:
            return np.fromiter(map(self._codes.__getitem__, values), np.int64, len(values)), None
        except (KeyError, TypeError):
            return encode_each(values, lambda value: self._codes.get(text_of(value)), self._extra, self.top)

    def loss(self, low: Ints, high: Ints) -> Floats:
        """Return the price of the lowest common ancestor of each stretch."""
        if self._table is not None:
            return np.asarray(self._table[low, high])
        return peak(self._peaks, np.asarray(low), np.asarray(high))

    def _label(self, low: int, high: int) -> str:
        return self.labels[self.node(low, high)]

    def contains(self, label: Any, value: Any) -> bool:
        """Whether some node of that label stands on the value's way to the root."""
        codes, trouble = self.encode([value])
        return trouble is None and self.node_on_path(int(codes[0]), label) is not None

    def cost_table(self) -> CostTable:
        """Return the square table for a small tree, the table of maxima for a large one."""
        least = float(self._peaks[0].min())
        if self._table is not None:
            return CostTable(Kind.TABLE, size=self.size, values=self._table.ravel(), least=least)
        return CostTable(Kind.PEAKS, size=self._peaks.shape[1], values=self._peaks.ravel(), least=least)

    def signature(self) -> str:
        """Return a digest of labels and shape."""
        digest = hashlib.blake2b(digest_size=16)
        for label, parent in zip(self.labels, self.parent, strict=True):
            digest.update(f"{len(label)}:{label}{parent}".encode())
        return f"tree {self.counting} {digest.hexdigest()}"


def peaks_of(pairs: Floats) -> Floats:
    """Return maxima of stretches of the pairs: row j, column i is the largest of `pairs[i : i + 2^j]`."""
    rows = [pairs]
    while 2 ** len(rows) <= len(pairs):
        previous, half = rows[-1], 2 ** (len(rows) - 1)
        row = previous.copy()
        row[: len(row) - half] = np.maximum(previous[: len(row) - half], previous[half:])
        rows.append(row)
    return np.stack(rows)


def peak(peaks: Floats, low: Ints, high: Ints) -> Floats:
    """Return the largest entry of row 0 in each `[low, high)`, 0 for an empty one, by two overlapping maxima."""
    span = high - low
    row = np.frexp(np.maximum(span, 1).astype(np.float64))[1] - 1  # floor of the binary logarithm
    left = peaks[row, np.minimum(low, peaks.shape[1] - 1)]
    right = peaks[row, np.maximum(high - (1 << row), 0)]
    return np.where(span > 0, np.maximum(left, right), 0.0)


def text_of(value: Any) -> str:
    """Return the text by which a category is known: JSON's own words for booleans, digits for integers.

    >>> text_of(True), text_of(7), text_of("7")
    ('true', '7', '7')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


Branch = TypeAliasType("Branch", "dict[str, Branch] | list[str] | None")


class TreeHierarchy(HierarchySettings):
    """A tree written inline: each node maps to its children, leaves as a list, or to nothing if it is one; one root."""

    named_nodes = True

    kind: Literal["tree"]
    tree: dict[str, Branch] = Field(min_length=1, max_length=1)

    def build(self, folder: Path, leaves: Leaves) -> Tree:
        """Return the tree as it is written."""
        [(root, below)] = self.tree.items()
        return Tree(branch(root, below), leaves)

    def rules(self, type_: str) -> Iterator[Problem]:
        """Yield nodes without leaves, and names that are given twice."""
        yield from _visit(("tree",), self.tree, set())


def _visit(at: tuple[str | int, ...], below: Branch, seen: set[str]) -> Iterator[Problem]:
    if below is None:
        return
    if not below:
        yield Problem(at, "no-children", "this node has no leaf below it", "list its leaves, or make it a leaf")
    labels = below.items() if isinstance(below, dict) else enumerate(below)
    for key, child in labels:
        label = str(key) if isinstance(below, dict) else str(child)
        if label in seen:
            hint = "give each node a name of its own"
            yield Problem((*at, key), "duplicate-value", "another node of the tree has this name", hint)
        seen.add(label)
        if isinstance(below, dict):
            yield from _visit((*at, key), below[str(key)], seen)
