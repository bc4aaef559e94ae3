"""Regions of points: cut in halves along the column in which they differ most, until each is small."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy import Ints
from stream_anon.core.kernels import Prices, cell_prices


def regions(prices: Prices, points: Ints, most: int) -> list[Ints]:
    """Return the numbers of the points, region by region, neighbours one after the other; none has more than `most`.

    A region is cut at the median of the column in which two of its points cost most together.
    """
    todo, found = [np.arange(len(points))], []
    while todo:
        index = todo.pop()
        if len(index) <= most:
            found.append(np.sort(index))
            continue
        here, there = points[index], np.roll(points[index], len(index) // 2, axis=0)
        apart = cell_prices(prices.facts, prices.values, np.minimum(here, there), np.maximum(here, there))
        column = int(np.argmax(apart.mean(axis=0) * prices.weight))
        order = index[np.argsort(points[index, column], kind="stable")]
        todo += [order[len(order) // 2 :], order[: len(order) // 2]]
    return found
