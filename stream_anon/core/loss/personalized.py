"""The loss by which personalized (l, c)-anonymity clusters: widths of numbers and heights of common subtrees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_anon.core.hierarchy import Hierarchy, Ints, Tree


def height(tree: Tree, node: int) -> int:
    """Return the number of layers between a node and the deepest leaf below it."""
    depth = np.zeros(len(tree.labels), dtype=np.int64)
    for v in reversed(range(len(tree.labels) - 1)):  # parents have larger numbers
        depth[v] = depth[tree.parent[v]] + 1
    below = depth[tree.first[node] : tree.last[node] + 1]
    return int(below.max() - depth[node])


def class_loss(qi: Ints, hierarchies: Sequence[Hierarchy]) -> float:
    """Return IL(e) = |e| * (sum of relative widths + sum of relative heights of the common subtrees)."""
    low, high = qi.min(axis=0), qi.max(axis=0)
    total = 0.0
    for q, hierarchy in enumerate(hierarchies):
        if isinstance(hierarchy, Tree):
            node = hierarchy.node(int(low[q]), int(high[q]))
            total += height(hierarchy, node) / height(hierarchy, len(hierarchy.labels) - 1)
        else:
            total += float(hierarchy.loss(low[q], high[q]))
    return len(qi) * total


def total_loss(qi: Ints, classes: Sequence[Ints], hierarchies: Sequence[Hierarchy]) -> float:
    """Return the sum of the losses of all classes."""
    return sum(class_loss(qi[index], hierarchies) for index in classes)
