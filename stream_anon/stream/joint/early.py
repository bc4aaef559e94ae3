"""Early clusters: a new row and rows near to it that need not wait any longer, found by an index of likeness."""

from __future__ import annotations

import numpy as np

from stream_anon.core.batch import Batch, cut
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import Prices, cell_prices
from stream_anon.policy.settings import CailSettings
from stream_anon.stream.kernels.lists import Lists, new_lists, take_all
from stream_anon.stream.kernels.rounds import Filed, Likeness, arrive, file_all, likeness_of, put_by_key

STEADY = 0.1
"""The threshold follows the average loss in steps of this share: the index is built anew with each."""


class EarlyClusters:
    """An index of the rows that wait by themselves, and the clusters that form when rows arrive.

    The threshold is fixed, or `patience` times the average loss per row of the last groups. Rows within it of each
    other agree in whatever would alone cost more; they share a key, and a newcomer looks only at rows of its own.
    """

    def __init__(self, prices: Prices, settings: CailSettings) -> None:
        self._prices = prices
        self._settings = settings
        self._lost = self._rows = 0.0
        self._likeness: Likeness = likeness_of(prices, -1.0)
        self._index: Lists = new_lists(1, 0)
        self._keys: Ints = np.empty(0, dtype=np.int64)
        self._filed = 0
        self._log2: Floats = np.zeros(1)

    def make_room(self, slots: int) -> None:
        """Grow with the buffer."""
        if len(self._keys) < slots:
            filed = np.flatnonzero(self._index.list_of >= 0)
            self._keys = np.concatenate([self._keys, np.zeros(slots - len(self._keys), dtype=np.int64)])
            self._index = new_lists(max(1024, 1 << (slots - 1).bit_length()), slots)
            put_by_key(self._index, filed, self._keys)

    def arrive(self, slots: Ints, columns: Batch, people: int) -> list[Ints]:
        """Let rows arrive, and return the blocks that formed; other rows are filed."""
        self._follow(columns.qi)
        if len(self._log2) <= people + 1:
            self._log2 = np.log2(np.maximum(np.arange(2 * people + 2), 1))
        filed = Filed(self._index, self._keys, self._filed)
        chosen, sizes = arrive(
            self._prices, self._likeness, columns.qi, columns.subject, slots, filed, people, self._log2
        )
        self._filed += len(slots) - len(chosen)
        return cut(chosen, np.cumsum(sizes)[:-1].tolist()) if len(sizes) else []

    def file(self, slots: Ints, qi: Ints) -> None:
        """Let later rows find these."""
        file_all(self._likeness, qi, slots, self._index, self._keys)
        self._filed += len(slots)

    def forget(self, slots: Ints) -> None:
        """Let no later row find these."""
        self._filed -= int(np.count_nonzero(self._index.list_of[slots] >= 0))
        take_all(self._index, slots)

    def learn(self, groups: list[Ints], qi: Ints) -> None:
        """Follow the average loss per row of the groups that leave."""
        if not groups:
            return
        size = np.array([len(group) for group in groups])
        rows, starts = qi[np.concatenate(groups)], np.concatenate([[0], np.cumsum(size)[:-1]])
        low, high = np.minimum.reduceat(rows, starts, axis=0), np.maximum.reduceat(rows, starts, axis=0)
        lost = cell_prices(self._prices.facts, self._prices.values, low, high) @ self._prices.weight
        fade = 0.5 ** (float(size.sum()) / max(self._settings.memory * float(size.mean()), float(self._filed)))
        self._lost = fade * self._lost + float(lost @ size)
        self._rows = fade * self._rows + float(size.sum())

    def _follow(self, qi: Ints) -> None:
        """Take up the present threshold, if it has changed enough; none while no group has left."""
        if self._settings.threshold is not None:
            limit = self._settings.threshold
        else:
            limit = self._settings.patience * self._lost / self._rows if self._rows else -1.0
        now = self._likeness.limit
        if limit == now or (now > 0.0 and abs(limit - now) < STEADY * now):
            return
        before, self._likeness = self._likeness, likeness_of(self._prices, limit)
        if (before.units != self._likeness.units).any():
            filed = np.flatnonzero(self._index.list_of >= 0)
            take_all(self._index, filed)
            file_all(self._likeness, qi, filed, self._index, self._keys)
