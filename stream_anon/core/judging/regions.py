"""Regions of points: cut in halves along the column in which they differ most, until each is small."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy import Ints


def regions(points: Ints, most: int) -> list[Ints]:
    """Return the numbers of the points, region by region, neighbours one after the other; none has more than `most`.

    >>> [region.tolist() for region in regions(np.array([[5], [1], [9], [2]]), most=2)]
    [[1, 3], [0, 2]]
    """
    todo, found = [np.arange(len(points))], []
    while todo:
        index = todo.pop()
        if len(index) <= most:
            found.append(np.sort(index))
            continue
        differ = [len(np.unique(points[index, q])) for q in range(points.shape[1])]
        order = index[np.argsort(points[index, int(np.argmax(differ))], kind="stable")]
        todo += [order[len(order) // 2 :], order[: len(order) // 2]]
    return found
