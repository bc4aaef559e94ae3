"""CASTLE, a baseline: standing clusters, joined by least enlargement and released when their oldest row is due."""

from __future__ import annotations

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Ints
from stream_anon.policy.settings import CastleSettings
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.clusters import Clusters
from stream_anon.stream.group_finder import GroupFinder, first_people
from stream_anon.stream.recent import RecentLosses
from stream_anon.stream.reusable_groups import ReusableGroups


class Castle(Algorithm):
    """Continuously anonymizing streaming data via adaptive clustering (Cao et al., 2011).

    A row joins the cluster it enlarges least if the cluster's loss stays within the average of the last releases; else
    it opens one, unless there are `max_clusters` already. When a row is due its cluster leaves, split into groups of
    nearest neighbours if it is large enough for several, merged with the nearest clusters if it is too small. With
    `reusable`, a row whose cluster is too small joins a group that has left instead, if one can take it.
    Outliers are not suppressed while a merge can place them: a suppressed row loses everything.
    """

    def __init__(self, finder: GroupFinder, settings: CastleSettings, reusable: ReusableGroups | None) -> None:
        self._finder = finder
        self._reusable = reusable
        self._buffer = finder.buffer
        self._clusters = Clusters(finder, settings.max_clusters)
        self._recent = RecentLosses(settings.memory)

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in."""
        return len(self._clusters)

    def arrive(self, slots: Ints) -> tuple[int, Ints | None]:
        """Put each row into a cluster, or open one for it."""
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

    def complete(self, slot: int) -> list[Ints] | Group:
        """Return the due row's cluster, in parts; first merge it with others if it does not satisfy the policy."""
        clusters, finder = self._clusters, self._finder
        members = clusters.members(clusters.of(slot))
        good = finder.passes(members)
        while not good:
            added = self._reusable.take_in(self._buffer.rows(np.array([slot]))) if self._reusable is not None else None
            if added is not None:
                return added
            if len(clusters) == 1:
                if not finder.holds(members):
                    return []
                break
            clusters.merge(*self._nearest(clusters.of(slot)))
            members = clusters.members(clusters.of(slot))
            good = finder.holds(members)
        groups = self._parts(members)
        for group in groups:
            self._recent.add(finder.price(group))
        return groups

    def _nearest(self, cluster: int) -> tuple[int, int]:
        """Return the cluster and the one whose union with it costs least; the older of the two first."""
        clusters = self._clusters
        low = np.minimum(clusters.low, clusters.low[cluster])
        high = np.maximum(clusters.high, clusters.high[cluster])
        price = self._finder.box_prices(low, high)
        price[cluster] = np.inf
        other = int(np.argmin(price))
        return min(cluster, other), max(cluster, other)

    def _parts(self, members: Ints) -> list[Ints]:
        """Split a cluster large enough for several groups, each its oldest row and the people nearest to that one."""
        finder, subject, parts = self._finder, self._buffer.columns.subject, []
        rest = members
        while len(np.unique(subject[rest])) >= 2 * finder.people:
            near = rest[np.argsort(finder.prices_with(int(rest[0]), rest), kind="stable")]
            part = first_people(near, subject[near], finder.people)
            parts.append(part)
            rest = rest[~np.isin(rest, part)]
        groups, left = finder.veto.settle(self._buffer.columns, [*parts, rest])
        return [members] if left is not None else groups

    def leave(self, slots: Ints) -> None:
        """Remove the rows from their clusters."""
        self._clusters.leave(slots)
