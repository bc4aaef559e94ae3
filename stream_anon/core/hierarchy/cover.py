"""Which positions a published label covers: more than those of its group, where labels go up to nodes and grids."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy.base import Hierarchy, Ints, Kind
from stream_anon.core.hierarchy.ladder import rung, span_loss
from stream_anon.core.hierarchy.tree import Tree


def covered(hierarchy: Hierarchy, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the first and the last position that the label of each stretch covers.

    A kind of hierarchy from elsewhere that is no ladder counts as if its labels covered what they are made of.

    >>> from stream_anon.core.hierarchy import Interval, Prefix
    >>> covered(Interval(0, 99, snap=(5, 10)), np.array([31, 31]), np.array([33, 52]))
    (array([30, 30]), array([34, 59]))
    >>> covered(Prefix(3), np.array([211]), np.array([219]))
    (array([210]), array([219]))
    """
    low, high = np.asarray(low), np.asarray(high)
    if isinstance(hierarchy, Tree):
        node = low.copy()
        while (below := hierarchy.last[node] < high).any():
            node = np.where(below, hierarchy.parent[node], node)
        return hierarchy.first[node], hierarchy.last[node]
    table = hierarchy.cost_table()
    if table.kind not in (Kind.LADDER, Kind.LINEAR):
        return low, high
    if table.slope:
        left, right, _ = span_loss(low, high, table.units, table.slope, table.lowest, table.highest)
    else:
        unit = np.array([*table.units, table.highest])[rung(table.units, low, high)]
        left = low // unit * unit
        right = np.minimum(left + unit, table.highest) - 1
    alone, mixed = low == high, high >= table.highest  # what is missing has a place of its own, behind all others
    left = np.where(mixed, np.where(alone, low, table.lowest), left)
    return left, np.where(mixed, high, right)
