"""CAIL with standing clusters, as published: rows join by CAILDistance, clusters wait until they are full."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.policy.settings import CailSettings
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.clusters import Clusters
from stream_anon.stream.group_finder import GroupFinder
from stream_anon.stream.recent import RecentLosses


class StandingClusters(Algorithm):
    """An algorithm with up to `max_clusters` open clusters.

    1. A row joins the cluster of least CAILDistance if that is within the threshold, or if no more may be opened; else
       it opens one. Ties: the smaller cluster, then the older.
    2. A cluster that holds enough people is judged, and again whenever it holds as many more; if the policy is
       satisfied it leaves at once, unless those who stay would lack what it takes along.
    3. When a row is due, its cluster is completed by the rows nearest to it (`nearest`), or clusters are merged, the
       cheapest pair first, until one of them satisfies the policy (`merge`).
    """

    def __init__(self, finder: GroupFinder, settings: CailSettings) -> None:
        self._finder = finder
        self._buffer = finder.buffer
        self._settings = settings
        self._clusters = Clusters(finder, settings.max_clusters)
        self._recent = RecentLosses(settings.memory)

    def distances(self, slot: int) -> Floats:
        """Return the CAILDistance of a row to each open cluster, oldest first."""
        clusters = self._clusters
        widened = clusters.widened(slot)
        distances: Floats = widened + (widened - clusters.price) * np.log2(clusters.size)
        return distances

    def _threshold(self) -> float:
        if self._settings.threshold is not None:
            return self._settings.threshold
        return self._settings.patience * (self._recent.average() or 0.0)

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in."""
        return len(self._clusters)

    def arrive(self, slots: Ints) -> tuple[int, Ints | None]:
        """Put each row into a cluster or open one for it, until one is ready."""
        clusters, finder = self._clusters, self._finder
        for i, slot in enumerate(slots.tolist()):
            self._buffer.admit(slots[i : i + 1])
            cluster = self._assign(slot)
            if clusters.size[cluster] % finder.people == 0:
                members = clusters.members(cluster)
                if finder.passes(members) if len(members) == finder.people else finder.may_go(members):
                    return i + 1, self._leaving(members)
        return len(slots), None

    def _assign(self, slot: int) -> int:
        clusters = self._clusters
        if len(clusters):
            distances = self.distances(slot)
            best = int(np.lexsort((clusters.born, clusters.size, distances))[0])
            if distances[best] <= self._threshold() or len(clusters) >= clusters.limit:
                clusters.join(slot, best)
                return best
        return clusters.open(slot)

    def complete(self, slot: int) -> list[Ints]:
        """Complete the due row's cluster."""
        if self._settings.completion == "merge" or (self._settings.completion, self._settings.clusters) == (
            "auto",
            "auto",
        ):
            return self._merge(slot)
        seed = self._clusters.members(self._clusters.of(slot))
        group = self._finder.grow(seed)
        return [] if group is None else [self._leaving(group)]

    def _merge(self, slot: int) -> list[Ints]:
        """Merge the cheapest pair again and again and release what satisfies the policy, until the due row leaves."""
        clusters = self._clusters
        groups: list[Ints] = []
        count = len(clusters)
        prices = np.full((count, count), np.inf)  # of a pair: in the row of the first, the column of the second
        open_ = np.ones(count, dtype=np.bool_)
        for c in range(count):
            prices[c, c + 1 :] = self._joined(c)[c + 1 :]
        while open_[clusters.of(slot)]:
            if np.count_nonzero(open_) < 2:
                members = clusters.members(clusters.of(slot))
                return [*groups, self._leaving(members)] if self._finder.holds(members) else groups
            into, other = map(int, np.unravel_index(np.argmin(prices), prices.shape))
            clusters.merge(into, other)
            prices, open_ = np.delete(np.delete(prices, other, 0), other, 1), np.delete(open_, other)
            members = clusters.members(into)
            if self._finder.holds(members):
                open_[into] = False
                groups.append(self._leaving(members))
            joined = np.where(open_ & open_[into], self._joined(into), np.inf)
            prices[:into, into], prices[into, into + 1 :] = joined[:into], joined[into + 1 :]
        return groups

    def _joined(self, cluster: int) -> Floats:
        """Return the price of a cluster together with each of all."""
        low, high = self._clusters.low, self._clusters.high
        return self._finder.box_prices(np.minimum(low, low[cluster]), np.maximum(high, high[cluster]))

    def _leaving(self, group: Ints) -> Ints:
        self._recent.add(self._finder.price(group))
        return group

    def leave(self, slots: Ints) -> None:
        """Remove the rows from their clusters."""
        self._clusters.leave(slots)
