"""Clear a whole buffer, cheapest group first: better than one group at a time where groups are large."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.stream.group_finder import GroupFinder

POOL = 8
"""Clusters kept grown at a time; the cheapest leaves. More of them find cheaper groups and cost more."""


class Sweep:
    """One sweep that groups all waiting rows.

    A pool of clusters is kept, each grown by CAILDistance and density around a row that is easy to place. The cheapest
    whose rows are all still there leaves; one that lost rows is grown again first. Prices mostly rise while rows leave,
    so the cheapest by its old price is the only one that has to be looked at.
    """

    def __init__(self, finder: GroupFinder, waiting: Ints, hardness: Floats) -> None:
        self._finder = finder
        self._rest = waiting.copy()
        self._easy_first = waiting[np.argsort(hardness[waiting], kind="stable")]
        self._pool: dict[int, tuple[float, Ints]] = {}  # seed -> price and members; none yet if not grown
        self._drawn = 0

    def groups(self, due: int) -> list[Ints]:
        """Group all rows. Those too few for a group of their own join the one that they widen least."""
        found: list[Ints] = []
        while (group := self._cheapest()) is not None:
            found.append(group)
            self._rest = self._rest[~np.isin(self._rest, group)]
        if found:
            self._place_rest(found)
        return found

    def _place_rest(self, groups: list[Ints]) -> None:
        qi, kernels = self._finder.buffer.columns.qi, self._finder.kernels
        low = np.stack([qi[group].min(axis=0) for group in groups])
        high = np.stack([qi[group].max(axis=0) for group in groups])
        size = np.array([len(group) for group in groups])
        price = kernels.box_prices(low, high)
        for slot in self._rest.tolist():
            widened = kernels.widened_prices(qi, slot, low, high)
            for g in np.argsort((size + 1) * widened - size * price, kind="stable").tolist():
                joined = np.append(groups[g], slot)
                if self._finder.holds(joined):
                    groups[g] = joined
                    low[g], high[g] = np.minimum(low[g], qi[slot]), np.maximum(high[g], qi[slot])
                    size[g], price[g] = size[g] + 1, widened[g]
                    break

    def _cheapest(self) -> Ints | None:
        here = set(self._rest.tolist())
        self._pool = {seed: known for seed, known in self._pool.items() if seed in here}
        self._refill(here)
        while self._pool:
            seed = min(self._pool, key=lambda s: self._pool[s][0])
            members = self._pool[seed][1]
            if len(members) and here.issuperset(members.tolist()):
                return members
            grown = self._finder.grow_dense(seed, self._rest)
            if grown is None:
                del self._pool[seed]
                continue
            self._pool[seed] = self._finder.price(grown), grown
        return None

    def _refill(self, here: set[int]) -> None:
        """Fill the pool with seeds from the easier half, spread over it by a fixed sequence."""
        easy = [slot for slot in self._easy_first.tolist() if slot in here]
        half = max(1, len(easy) // 2)
        for _ in range(4 * POOL):
            if len(self._pool) >= POOL or not easy:
                return
            self._drawn += 1
            seed = easy[(self._drawn * 2654435769 % 2**32) * half >> 32]  # the golden ratio spreads evenly
            self._pool.setdefault(seed, (-1.0, np.empty(0, dtype=np.int64)))
