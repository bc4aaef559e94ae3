"""CAIL, the default: clusters form around new rows by CAILDistance; what is due is cleared with all that is near."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.veto import Veto
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import CailSettings
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.buffer import Buffer
from stream_anon.stream.joint.clearing import Clearing
from stream_anon.stream.joint.early import EarlyClusters
from stream_anon.stream.joint.pools import LARGEST, Pool, Pools

FEW_POOLS, PACE, EVERY = 4, 8, 500
"""More pools than these few are not left to fall due together: no more than PACE times the average number of them is
put off to any part of the bound. Asked for after so many arrivals."""

LARGE, EARLY = 32, 0.9
"""A group is large if fewer than so many times its people arrive within the bound; then this share of the bound serves.
The mean delay comes down by a tenth, and the loss goes up by a thirtieth."""


class Cail(Algorithm):
    """An algorithm of clusters that form around new rows, and of pools that are cleared when a row in them is due.

    1. A newcomer opens a cluster. Waiting rows join it, nearest by CAILDistance first, while the distance stays within
       the threshold: `patience` times the average loss of the last groups. If it comes to hold enough people it is a
       block; if not, it dissolves and its rows go on waiting.
    2. When a row is due, everything that waits in its pool is divided into blocks at once and leaves.
    3. Privacy models judge finished blocks. One that is refused waits as a whole until its pool is cleared, and is then
       merged with its nearest.
    """

    def __init__(self, schema: Schema, buffer: Buffer, settings: CailSettings) -> None:
        prices, hierarchies = schema.counted(settings.loss)
        self._buffer = buffer
        self._veto = Veto(schema)
        self._early = EarlyClusters(prices, settings)
        self._pools = Pools(hierarchies, prices.weight)
        self._clearing = Clearing(prices, hierarchies)
        self._asked = 0

    def arrive(self, slots: Ints) -> tuple[int, Ints | None]:
        """Admit rows that are handed back: they wait, and form no clusters, for their deadline may be past."""
        self._prepare()
        self._buffer.admit(slots)
        self._early.file(slots, self._buffer.columns.qi)
        self._pools.put(slots, self._buffer.columns)
        return len(slots), None

    def arrive_batch(self, slots: Ints, most: int) -> tuple[int, list[Ints]]:
        """Let rows arrive; the blocks that form leave unless they are refused, and then wait as a whole."""
        self._prepare()
        slots = slots[:most]
        columns = self._buffer.columns
        self._buffer.admit(slots)
        blocks = self._early.arrive(slots, columns, self._veto.lone.people)
        self._pools.put(slots[~np.isin(slots, np.concatenate(blocks))] if blocks else slots, columns)
        good = self._veto.passes(columns, blocks).tolist()
        leaving = [block for block, leaves in zip(blocks, good, strict=True) if leaves]
        for block, leaves in zip(blocks, good, strict=True):
            if not leaves:
                self._pools.take(block)
                self._pools.park(block, columns)
        self._early.learn(leaving, columns.qi)
        return len(slots), leaving

    def window(self, since: int) -> float:
        """Let large groups leave a little early: few rows find a cluster before, so that nearly all wait long."""
        return EARLY if since < EARLY * LARGE * self._veto.people else 1.0

    def ahead(self, used: Callable[[int, float], float]) -> Iterator[list[Ints]]:
        """Clear the oldest pools a little early where too many would be due at once: calls stay short."""
        if self._buffer.latest - self._asked < EVERY:
            return
        self._asked = self._buffer.latest
        pools = [pool for pool in self._pools.leaves() if not pool.stuck]
        if len(pools) <= FEW_POOLS:
            return
        left = np.array([1.0 - used(*pool.since) for pool in pools])
        oldest = np.argsort(left, kind="stable")
        waiting = np.arange(len(pools)) - FEW_POOLS - PACE * len(pools) * np.maximum(left[oldest], 0.0)
        for place in oldest[: max(0, int(np.ceil(waiting.max())))].tolist():
            groups, rest = self._clear([pools[place]])
            pools[place].stuck = rest is not None
            yield groups

    def complete(self, slot: int) -> list[Ints]:
        """Clear the pool of the row that is due; with more and more of its neighbours, if that gives no groups."""
        region: Pool | None = self._pools.around(self._pools.of(slot), LARGEST // FEW_POOLS)
        while region is not None:
            groups, rest = self._clear(self._pools.leaves(region))
            if rest is None:
                return groups
            region = region.parent
        return []

    def clear(self) -> list[Ints]:
        """Divide everything that waits at once, as if all of it were due."""
        groups, _ = self._clear(self._pools.leaves())
        return groups

    def _clear(self, pools: list[Pool]) -> tuple[list[Ints], Ints | None]:
        """Divide pools into blocks, merge those that are refused, and return the groups and the rows without one.

        If all rows together do not satisfy what can be counted, no division of them does, and none is tried.
        """
        if not pools:
            return [], None
        columns = self._buffer.columns
        waiting = [self._pools.rows(pool) for pool in pools]
        parked = [parked.slots for pool in pools for parked in pool.parked]
        everything = np.concatenate([*waiting, *parked])
        if not self._veto.blind and not self._veto.possible(columns, everything):
            return [], everything
        self._veto.heed()
        blocks: list[Ints] = []
        for rows in _together(waiting, LARGEST):
            rows = rows[np.argsort(columns.serial[rows], kind="stable")]
            blocks += self._clearing.divide(columns.qi, columns.subject, rows, self._veto.pooled.people)
        groups, rest = self._veto.settle(columns, blocks + parked, len(parked))
        self._veto.heed()  # before another block forms that could leave by itself
        self._early.learn(groups, columns.qi)
        return _most_urgent_first(groups, columns.serial), rest

    def leave(self, slots: Ints) -> None:
        """Forget these rows; what is left of a block that is broken by it waits row by row."""
        loose = self._pools.take(slots)
        self._early.forget(slots)
        if len(loose):
            self._early.file(loose, self._buffer.columns.qi)
            self._pools.put(loose, self._buffer.columns)

    def _prepare(self) -> None:
        self._pools.make_room(self._buffer.capacity)
        self._early.make_room(self._buffer.capacity)


def _most_urgent_first(groups: list[Ints], serial: Ints) -> list[Ints]:
    if not groups:
        return []
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    oldest = np.minimum.reduceat(serial[np.concatenate(groups)], starts)
    return [groups[place] for place in np.argsort(oldest, kind="stable").tolist()]


def _together(parts: list[Ints], most: int) -> Iterator[Ints]:
    """Join neighbouring parts into larger ones of no more than `most` rows."""
    joined: list[Ints] = []
    for part in parts:
        if joined and sum(map(len, joined)) + len(part) > most:
            yield np.concatenate(joined)
            joined = []
        joined.append(part)
    if joined:
        yield np.concatenate(joined)
