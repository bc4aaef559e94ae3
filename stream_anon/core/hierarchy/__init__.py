"""How values become less exact, what that costs and how it is written: one module per kind of hierarchy.

Every module of this package that defines settings is a kind; other distributions add theirs by entry points of the
group `stream_anon.hierarchies`.
"""

from __future__ import annotations

from stream_anon.core.hierarchy.base import CostTable, Floats, Hierarchy, Ints, Kind, Leaves, Trouble
from stream_anon.core.hierarchy.calendar import Calendar
from stream_anon.core.hierarchy.interval import Interval
from stream_anon.core.hierarchy.prefix import Prefix
from stream_anon.core.hierarchy.sets import ValueSet
from stream_anon.core.hierarchy.settings import HIERARCHIES, AnyHierarchy, HierarchySettings
from stream_anon.core.hierarchy.tree import Counting, Node, Tree, branch

__all__ = [
    "HIERARCHIES",
    "AnyHierarchy",
    "Calendar",
    "CostTable",
    "Counting",
    "Floats",
    "Hierarchy",
    "HierarchySettings",
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
]

HIERARCHIES.discover(__name__, __path__)
