"""The loss of a cluster and the distance from a row to a cluster by which CAIL rounds assign rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stream_anon.core.hierarchy import Hierarchy, Ints


def cluster_loss(qi: Ints, hierarchies: Sequence[Hierarchy]) -> float:
    """Return IL(C): what every row of the cluster loses when all become their common ancestor, averaged over rows.

    Rows are leaves and leaves count nothing, so this is the sum over the columns of what the common ancestor counts.
    How a node counts (its leaves, its descendants, its whole subtree, or its share of the leaves) is the hierarchy's.

    >>> from stream_anon.core.hierarchy import Tree, branch
    >>> tree = Tree(branch("clothing", {"bottom": ["pants", "skirt"], "top": ["T-shirts", "shirts"]}))
    >>> cluster_loss(tree.encode(["skirt", "pants"])[0][:, None], [tree])
    0.5
    """
    low, high = qi.min(axis=0), qi.max(axis=0)
    return float(sum(float(h.loss(low[q], high[q])) for q, h in enumerate(hierarchies)))


def cail_distance(row: Ints, cluster: Ints, hierarchies: Sequence[Hierarchy]) -> float:
    """Return CAILDistance(R, C) = IL(C + R) + (IL(C + R) - IL(C)) * log2 |C|: growth weighs more with more rows."""
    after = cluster_loss(np.vstack([cluster, row]), hierarchies)
    return after + (after - cluster_loss(cluster, hierarchies)) * math.log2(len(cluster))
