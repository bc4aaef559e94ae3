"""How the values of each quasi-identifier are distributed, before and after: shares of rows along its scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats

CELLS = 12
"""Cells of equal width that a scale is cut into, at most, and no more than it has values."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """The shares of rows in each cell of the range of a column; `moved` is the share that lies elsewhere afterwards."""

    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def moved(self) -> float:
        """The distance of the two in total variation, 0 to 1."""
        return sum(abs(one - other) for one, other in zip(self.before, self.after, strict=True)) / 2


def distributions(groups: Sequence[Group]) -> list[Distribution]:
    """Return both distributions of each quasi-identifier; a published range is spread evenly over its positions."""
    if not groups:
        return []
    sizes = [len(group) for group in groups]
    qi = np.concatenate([group.rows.qi for group in groups])
    low, high = (np.repeat([getattr(group, end) for group in groups], sizes, axis=0) for end in ("low", "high"))
    found = []
    for q, column in enumerate(groups[0].schema.quasi):
        cells = min(CELLS, len(np.unique(qi[:, q])))
        edges = np.linspace(qi[:, q].min(), qi[:, q].max() + 1, cells + 1)
        left = np.maximum(low[:, q], edges[0])
        right = np.maximum(np.minimum(high[:, q] + 1, edges[-1]), left + 1)
        points = qi[:, q]
        found.append(Distribution(column.name, _spread(points, points + 1, edges), _spread(left, right, edges)))
    return found


def _spread(low: Floats, high: Floats, edges: Floats) -> tuple[float, ...]:
    """Return the share of all rows in each cell, where a row lies evenly between its ends."""
    return tuple(
        float(np.mean(np.clip(np.minimum(high, stop) - np.maximum(low, start), 0, None) / (high - low)))
        for start, stop in pairwise(edges.tolist())
    )
