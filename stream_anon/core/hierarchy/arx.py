"""Trees in ARX's CSV form: one line per leaf, column i the label at level i, the last column the root.

A label at one level has one parent at the next; lines have equal lengths. Anything else is refused with its place.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from stream_anon.core.hierarchy.base import Leaves
from stream_anon.core.hierarchy.settings import HierarchySettings
from stream_anon.core.hierarchy.tree import Node, Tree
from stream_anon.errors import Diagnostic, PolicyError
from stream_anon.grammar.tables import Cell, read_cells

Key = tuple[int, str]

LEVELS = 100
"""Columns. No hierarchy in use has a tenth of it; far more of them are another file given by mistake."""


def read_tree(path: Path, shown: str, delimiter: str = ";") -> Node:
    """Return the tree of a CSV file, children in the order of their first lines."""
    lines = read_cells(path, shown, delimiter)
    found = _shape_mistakes(lines, shown) or _parent_mistakes(lines, shown)
    if found:
        raise PolicyError(found)
    children: dict[Key, dict[Key, None]] = {}
    for _, cells in lines:
        keys = [(level, cell.text) for level, cell in enumerate(cells)]
        for below, above in pairwise(keys):
            children.setdefault(above, {})[below] = None
    depth = len(lines[0][1]) - 1
    return _node((depth, lines[0][1][-1].text), children)


def _node(key: Key, children: dict[Key, dict[Key, None]]) -> Node:
    return Node(key[1], tuple(_node(child, children) for child in children.get(key, ())))


def _shape_mistakes(lines: list[tuple[int, list[Cell]]], shown: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    width = len(lines[0][1])
    if width < 2:
        cell = lines[0][1][0]
        hint = 'write leaf;...;* on each line, or set "delimiter"'
        return [Diagnostic("one-column", "a hierarchy needs at least two columns", shown, 1, 1, cell.width, hint)]
    if width > LEVELS:
        cell = lines[0][1][LEVELS]
        message = f"a hierarchy has at most {LEVELS} columns, this one {width}"
        return [Diagnostic("too-many-columns", message, shown, 1, cell.column, cell.width)]
    leaves: dict[str, int] = {}
    for line, cells in lines:
        if len(cells) != width:
            last = cells[-1]
            message = f"this line has {len(cells)} columns, the first line has {width}"
            found.append(Diagnostic("uneven-lines", message, shown, line, last.column, last.width))
        for cell in cells:
            if not cell.text.strip():
                found.append(Diagnostic("empty-cell", "a label is empty", shown, line, cell.column, cell.width))
        leaf = cells[0]
        if leaf.text in leaves:
            message = f"this leaf is already on line {leaves[leaf.text]}"
            found.append(Diagnostic("duplicate-leaf", message, shown, line, leaf.column, leaf.width))
        leaves.setdefault(leaf.text, line)
    return found


def _parent_mistakes(lines: list[tuple[int, list[Cell]]], shown: str) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    parents: dict[Key, tuple[str, int]] = {}
    root = lines[0][1][-1].text
    for line, cells in lines:
        for level, (below, above) in enumerate(pairwise(cells)):
            known, first = parents.setdefault((level, below.text), (above.text, line))
            if known != above.text:
                message = f'"{below.text}" is below "{above.text}" here and below "{known}" on line {first}'
                hint = f'a label at column {level + 1} needs one parent; did you mean "{known}"?'
                found.append(Diagnostic("two-parents", message, shown, line, above.column, above.width, hint))
        if cells[-1].text != root:
            last = cells[-1]
            message = f'the last column must be the same on every line: "{root}"'
            found.append(Diagnostic("two-roots", message, shown, line, last.column, last.width, f'write "{root}"'))
    return found


class CsvHierarchy(HierarchySettings):
    """A tree in ARX's CSV form: no header, one line per leaf, column i is the label at level i, the last one `*`."""

    named_nodes = True

    kind: Literal["csv"]
    path: str
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ";"

    def build(self, folder: Path, leaves: Leaves) -> Tree:
        """Return the tree that is in the file."""
        return Tree(read_tree(folder / self.path, self.path, self.delimiter), leaves)
