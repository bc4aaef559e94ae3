"""How values become less exact, what that costs and how it is written. `build` makes hierarchies from a policy."""

from __future__ import annotations

from pathlib import Path

from stream_anon.core.hierarchy import settings
from stream_anon.core.hierarchy.arx import read_tree
from stream_anon.core.hierarchy.base import CostTable, Floats, Hierarchy, Ints, Kind, Leaves, Trouble
from stream_anon.core.hierarchy.calendar import Calendar
from stream_anon.core.hierarchy.interval import Interval
from stream_anon.core.hierarchy.prefix import Prefix
from stream_anon.core.hierarchy.sets import ValueSet
from stream_anon.core.hierarchy.tree import Counting, Node, Tree, branch

TREES = ("flat", "tree", "csv")
"""The kinds of hierarchy that are trees of named nodes."""

__all__ = [
    "TREES",
    "Calendar",
    "CostTable",
    "Counting",
    "Floats",
    "Hierarchy",
    "Interval",
    "Ints",
    "Kind",
    "Leaves",
    "Node",
    "Prefix",
    "Tree",
    "Trouble",
    "ValueSet",
    "branch",
    "build",
]


def build(spec: settings.HierarchySettings, folder: Path, leaves: Leaves) -> Hierarchy:
    """Build the hierarchy that settings describe, with files from `folder`. Raises PolicyError for a broken file."""
    match spec:
        case settings.IntervalHierarchy():
            low, high = spec.range or (None, None)
            return Interval(low, high, spec.scale, spec.snap or (), spec.step, leaves)
        case settings.FlatHierarchy():
            return Tree(Node("*", tuple(Node(value) for value in spec.values)), leaves)
        case settings.TreeHierarchy():
            [(root, below)] = spec.tree.items()
            return Tree(branch(root, below), leaves)
        case settings.CsvHierarchy():
            return Tree(read_tree(folder / spec.path, spec.path, spec.delimiter), leaves)
        case settings.PrefixHierarchy():
            return Prefix(spec.length, spec.alphabet, leaves)
        case settings.CalendarHierarchy():
            return Calendar(spec.levels, 1000 if spec.epoch == "milliseconds" else 1, leaves)
        case settings.SetHierarchy():
            return ValueSet(spec.values, leaves)
