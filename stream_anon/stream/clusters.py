"""Standing clusters: open boxes that rows join as they arrive and leave as they are published."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.stream.group_finder import GroupFinder

NOWHERE = -1


class Clusters:
    """The open clusters: at most `limit` boxes with the rows they hold, oldest cluster first.

    Row c of `low`, `high`, `size` and `price` belongs to the c-th oldest open cluster; `cluster_of` gives for each slot
    of the buffer the number its cluster was born with.
    """

    def __init__(self, finder: GroupFinder, limit: int) -> None:
        self._buffer = finder.buffer
        self._finder = finder
        self.limit = limit
        self.born = np.empty(0, dtype=np.int64)
        self.low = np.empty((0, 0), dtype=np.int64)
        self.high = np.empty((0, 0), dtype=np.int64)
        self.size = np.empty(0, dtype=np.int64)
        self.price = np.empty(0)
        self._cluster_of = np.empty(0, dtype=np.int64)
        self._next = 0

    def __len__(self) -> int:
        return len(self.born)

    def widened(self, slot: int) -> Floats:
        """Return the price of each cluster if the row joined it."""
        point = self._buffer.columns.qi[slot]
        return self._finder.box_prices(np.minimum(self.low, point), np.maximum(self.high, point))

    def open(self, slot: int) -> int:
        """Open a new cluster of one row and return its place."""
        point = self._buffer.columns.qi[slot][None]
        self.low = np.concatenate([self.low.reshape(-1, point.shape[1]), point])
        self.high = np.concatenate([self.high.reshape(-1, point.shape[1]), point])
        self.size = np.append(self.size, 1)
        self.price = np.append(self.price, self._price(point[0], point[0]))
        self.born = np.append(self.born, self._next)
        self._mark(slot, self._next)
        self._next += 1
        return len(self) - 1

    def join(self, slot: int, cluster: int) -> None:
        """Add a row to a cluster."""
        point = self._buffer.columns.qi[slot]
        self.low[cluster] = np.minimum(self.low[cluster], point)
        self.high[cluster] = np.maximum(self.high[cluster], point)
        self.size[cluster] += 1
        self.price[cluster] = self._price(self.low[cluster], self.high[cluster])
        self._mark(slot, int(self.born[cluster]))

    def of(self, slot: int) -> int:
        """Return the place of a row's cluster."""
        return int(np.searchsorted(self.born, self._cluster_of[slot]))

    def members(self, cluster: int) -> Ints:
        """Return the rows of a cluster, oldest first."""
        waiting = self._buffer.waiting()
        found: Ints = waiting[self._cluster_of[waiting] == self.born[cluster]]
        return found

    def merge(self, into: int, other: int) -> None:
        """Move all rows of one cluster into another."""
        self._cluster_of[self._cluster_of == self.born[other]] = self.born[into]
        self.low[into] = np.minimum(self.low[into], self.low[other])
        self.high[into] = np.maximum(self.high[into], self.high[other])
        self.size[into] += self.size[other]
        self.price[into] = self._price(self.low[into], self.high[into])
        self._close(np.array([other]))

    def leave(self, slots: Ints) -> None:
        """Remove rows; shrink the clusters they leave to what they still hold, or close them."""
        if not len(self._cluster_of):
            return
        touched = np.unique(self._cluster_of[slots])
        self._cluster_of[slots] = NOWHERE
        empty = []
        for number in touched[touched != NOWHERE]:
            cluster = int(np.searchsorted(self.born, number))
            rest = self.members(cluster)
            self.size[cluster] = len(rest)
            if not len(rest):
                empty.append(cluster)
                continue
            rows = self._buffer.columns.qi[rest]
            self.low[cluster], self.high[cluster] = rows.min(axis=0), rows.max(axis=0)
            self.price[cluster] = self._price(self.low[cluster], self.high[cluster])
        self._close(np.array(empty, dtype=np.int64))

    def _price(self, low: Ints, high: Ints) -> float:
        return float(self._finder.box_prices(low[None], high[None])[0])

    def _close(self, places: Ints) -> None:
        if len(places):
            self.born, self.size = np.delete(self.born, places), np.delete(self.size, places)
            self.low, self.high = np.delete(self.low, places, axis=0), np.delete(self.high, places, axis=0)
            self.price = np.delete(self.price, places)

    def _mark(self, slot: int, number: int) -> None:
        if slot >= len(self._cluster_of):
            grown = np.full(self._buffer.capacity, NOWHERE, dtype=np.int64)
            grown[: len(self._cluster_of)] = self._cluster_of
            self._cluster_of = grown
        self._cluster_of[slot] = number
