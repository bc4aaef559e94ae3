"""CASTLE, a baseline: standing clusters, joined by least enlargement and released when their oldest row is due."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy import Ints
from stream_anon.policy.settings import CastleSettings
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.clusters import Clusters
from stream_anon.stream.company import Company
from stream_anon.stream.recent import RecentLosses


class Castle(Algorithm):
    """Continuously anonymizing streaming data via adaptive clustering (Cao et al., 2011), without reuse.

    A row joins the cluster it enlarges least if the cluster's loss stays within the average of the last releases; else
    it opens one, unless there are `max_clusters` already. When a row is due its cluster leaves: only the due row's
    nearest neighbours if it is large enough for two groups, merged with the nearest clusters if it is too small.
    Outliers are not suppressed while a merge can place them: a suppressed row loses everything.
    """

    def __init__(self, company: Company, settings: CastleSettings) -> None:
        self._company = company
        self._buffer = company.buffer
        self._clusters = Clusters(company.buffer, company.kernels, settings.max_clusters)
        self._recent = RecentLosses(settings.memory)

    def arrive(self, slots: Ints) -> tuple[int, Ints | None]:
        """Each row joins or opens a cluster."""
        for i, slot in enumerate(slots.tolist()):
            self._buffer.admit(slots[i : i + 1])
            self._assign(slot)
        return len(slots), None

    def _assign(self, slot: int) -> None:
        clusters = self._clusters
        if len(clusters):
            widened = clusters.widened(slot)
            order = np.lexsort((clusters.born, clusters.size, widened - clusters.price))
            fitting = order[widened[order] <= (self._recent.average() or 0.0)]
            if len(fitting) or len(clusters) >= clusters.limit:
                clusters.join(slot, int(fitting[0] if len(fitting) else order[0]))
                return
        clusters.open(slot)

    def complete(self, slot: int) -> list[Ints]:
        """The due row's cluster, or the part of it that holds the row; merged with others if it does not satisfy."""
        clusters, company = self._clusters, self._company
        while not company.holds(members := clusters.members(clusters.of(slot))):
            if len(clusters) == 1:
                return []
            clusters.merge(*self._nearest(clusters.of(slot)))
        group = self._part(slot, members)
        columns = self._buffer.columns.qi[group]
        self._recent.add(float(company.kernels.box_price(columns.min(axis=0), columns.max(axis=0))))
        return [group]

    def _nearest(self, cluster: int) -> tuple[int, int]:
        """The cluster and the one whose union with it costs least; the older of the two first."""
        clusters = self._clusters
        low = np.minimum(clusters.low, clusters.low[cluster])
        high = np.maximum(clusters.high, clusters.high[cluster])
        price = self._company.kernels.box_prices(low, high)
        price[cluster] = np.inf
        other = int(np.argmin(price))
        return min(cluster, other), max(cluster, other)

    def _part(self, slot: int, members: Ints) -> Ints:
        """Of a cluster large enough for two groups, the due row and its nearest; the rest must be a group as well."""
        company = self._company
        if len(members) < 2 * company.need.k:
            return members
        others = members[members != slot]
        point = self._buffer.columns.qi[slot]
        distance = company.kernels.union_prices(self._buffer.columns.qi, others, point, point)
        ordered = others[np.argsort(distance, kind="stable")]
        part = company.gather(np.array([slot], dtype=np.int64), ordered)
        if part is None or not company.holds(members[~np.isin(members, part)]):
            return members
        return part

    def leave(self, slots: Ints) -> None:
        """Rows leave their clusters."""
        self._clusters.leave(slots)
