"""The levels at which the values of one column can be published all alike: cells of positions, finer to coarser."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints, Kind, Tree


def levels_of(hierarchy: Hierarchy, points: Ints, widths: Sequence[int]) -> Ints:
    """(levels, points): the cell of each point at each level; level 0 is the finest, the last one is everything.

    A tree is climbed step by step; codes and instants lose their units one after the other; numbers fall into grids
    of the given widths, in units of their own grid if they have one. A level equal to the one below is left out.
    """
    cells = [_numbered(row) for row in _cells(hierarchy, points, widths)]
    cells.append(np.zeros(len(points), dtype=np.int64))
    kept = [cells[0]]
    for row in cells[1:]:
        if not np.array_equal(row, kept[-1]):
            kept.append(row)
    return np.stack(kept)


def cell_loss(hierarchy: Hierarchy, points: Ints, cells: Ints) -> Floats:
    """What each point loses when its cell is published as narrowly as the points in it allow."""
    low, high = np.full(cells.max() + 1, np.iinfo(np.int64).max), np.full(cells.max() + 1, np.iinfo(np.int64).min)
    np.minimum.at(low, cells, points)
    np.maximum.at(high, cells, points)
    return np.asarray(hierarchy.loss(low[cells], high[cells]))


def is_number(hierarchy: Hierarchy) -> bool:
    """Whether a stretch costs what it is wide."""
    table = hierarchy.cost_table()
    return table.kind is Kind.LINEAR or (table.kind is Kind.LADDER and table.slope > 0)


def geometric(points: Ints, steps: int) -> list[int]:
    """Widths that grow by equal factors from 1 to the range of the points.

    >>> geometric(np.array([17, 90]), 8)
    [1, 2, 3, 6, 12, 21, 40, 73]
    """
    return np.unique(np.round(np.geomspace(1, max(int(points[-1] - points[0]), 1), steps)).astype(np.int64)).tolist()


def _cells(hierarchy: Hierarchy, points: Ints, widths: Sequence[int]) -> list[Ints]:
    if isinstance(hierarchy, Tree):
        rows, node = [points], points
        while len(np.unique(node)) > 1:
            above = hierarchy.parent[node]
            node = np.where(above >= 0, above, node)
            rows.append(node)
        return rows
    table = hierarchy.cost_table()
    inside = points < table.highest if table.highest else np.ones(len(points), dtype=bool)
    units = list(table.units)
    if is_number(hierarchy):
        units = [unit for unit in units if unit > 1] or [1]
        base = int(points[inside].min()) if inside.any() and units == [1] else 0
        units += [width * units[-1] for width in widths if width > 1]
    else:
        base = 0
    # What is missing or unknown stays a value of its own at every level but the last.
    return [np.where(inside, (points - base) // unit, -1 - points) for unit in units]


def _numbered(cells: Ints) -> Ints:
    return np.unique(cells, return_inverse=True)[1].astype(np.int64)
