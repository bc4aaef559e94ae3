"""The levels at which all values of one column can be published: cells of positions, finer to coarser."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints, Kind, Tree


def levels_of(hierarchy: Hierarchy, points: Ints, widths: Sequence[int]) -> tuple[Ints, Floats]:
    """Return the cell of each point at each level, and how many positions that cell covers, as (levels, points).

    Level 0 is the finest, the last one is everything. A tree is climbed step by step; codes and instants lose their
    units one after the other; numbers fall into grids of the given widths, in units of their own grid if they have
    one. A level equal to the one below is left out.
    """
    cells, sizes = _cells(hierarchy, points, widths)
    whole = max(float(points[-1] - points[0] + 1), *(float(size.max()) for size in sizes))
    cells.append(np.zeros(len(points), dtype=np.int64))
    sizes.append(np.full(len(points), whole))
    numbered = [np.unique(row, return_inverse=True)[1].astype(np.int64) for row in cells]
    kept = [0]
    for level in range(1, len(numbered)):
        if not np.array_equal(numbered[level], numbered[kept[-1]]):
            kept.append(level)
    return np.stack([numbered[level] for level in kept]), np.stack([sizes[level] for level in kept])


def cell_loss(hierarchy: Hierarchy, points: Ints, cells: Ints) -> Floats:
    """Return what each point loses when its cell is published as narrowly as the points in it allow."""
    low, high = np.full(cells.max() + 1, np.iinfo(np.int64).max), np.full(cells.max() + 1, np.iinfo(np.int64).min)
    np.minimum.at(low, cells, points)
    np.maximum.at(high, cells, points)
    return np.asarray(hierarchy.loss(low[cells], high[cells]))


def is_number(hierarchy: Hierarchy) -> bool:
    """Tell whether the cost of a range grows with its width."""
    table = hierarchy.cost_table()
    return table.kind is Kind.LINEAR or (table.kind is Kind.LADDER and table.slope > 0)


def geometric(points: Ints, steps: int) -> list[int]:
    """Return widths that grow by equal factors from 1 to the range of the points.

    >>> geometric(np.array([17, 90]), 8)
    [1, 2, 3, 6, 12, 21, 40, 73]
    """
    widest = max(int(points[-1] - points[0]), 1)
    return [int(width) for width in np.unique(np.round(np.geomspace(1, widest, steps)))]


def _cells(hierarchy: Hierarchy, points: Ints, widths: Sequence[int]) -> tuple[list[Ints], list[Floats]]:
    if isinstance(hierarchy, Tree):
        rows, node = [points], points
        while len(np.unique(node)) > 1:
            above = hierarchy.parent[node]
            node = np.where(above >= 0, above, node)
            rows.append(node)
        return rows, [(hierarchy.last[node] - hierarchy.first[node] + 1).astype(np.float64) for node in rows]
    table = hierarchy.cost_table()
    inside = points < table.highest if table.highest else np.ones(len(points), dtype=bool)
    units, base = list(table.units), 0
    if is_number(hierarchy):
        base = int(points[inside].min()) if inside.any() and units == [1] else 0  # a grid of its own starts at 0
        units += [width * units[-1] for width in widths if width > 1]
    # What is missing or unknown stays a value of its own at every level but the last.
    cells = [np.where(inside, (points - base) // unit, -1 - points) for unit in units]
    return cells, [np.where(inside, float(unit), 1.0) for unit in units]
