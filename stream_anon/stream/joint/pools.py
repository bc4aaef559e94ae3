"""Pools of waiting rows: regions of the quasi-identifiers that are cleared one by one, so that no work grows with the
window."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stream_anon.core.batch import Batch, cut
from stream_anon.core.hierarchy import Floats, Hierarchy, Ints
from stream_anon.stream.kernels.lists import Lists, enlarged, members, new_lists, put_all, take_all

LARGEST = 6_000
"""Rows that a pool may hold before it is cut in two. Clearing so many takes some hundredths of a second; with fewer,
more is lost at the borders of pools: at 2,000 a window of 20,000 rows of Adult lost .088, not .052."""

EVEN = 0.25
"""Neither side of a cut gets less than this share of the rows."""

NOBODY = (-1, 0.0)
"""Where no row waits: the serial number and the arrival of the oldest."""

_NONE = np.empty(0, dtype=np.int64)


@dataclass(eq=False, slots=True)
class Pool:
    """A region: a leaf that holds rows and parked blocks, or a cut with a pool below and one above it.

    `since` is the serial number and the arrival of the row that came first since the pool was empty; `stuck` tells that
    since then no groups could be made of all its rows.
    """

    number: int
    parent: Pool | None = None
    column: int = -1
    cut: int = 0
    sides: tuple[Pool, Pool] | None = None
    count: int = 0
    since: tuple[int, float] = NOBODY
    stuck: bool = False
    parked: list[Parked] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Parked:
    """A block that waits as a whole, in a pool."""

    slots: Ints
    pool: Pool


class Pools:
    """A tree of cuts along quasi-identifiers; its leaves hold the waiting rows, and blocks that could not leave yet.

    A leaf that grows too large is cut where its rows differ most, which looks at nothing but quasi-identifiers.
    """

    def __init__(self, hierarchies: list[Hierarchy], weights: Floats) -> None:
        self._hierarchies, self._weights = hierarchies, weights
        self.root = Pool(0)
        self._by_number = [self.root]
        self._lists: Lists = new_lists(1, 0)
        self._cuts = np.full((1, 4), -1, dtype=np.int64)  # of each pool: column, place, and the pools below and above
        self._parked_in: dict[int, Parked] = {}

    def make_room(self, slots: int) -> None:
        """Grow with the buffer."""
        if len(self._lists.list_of) < slots:
            self._lists = enlarged(self._lists, len(self._lists.head), slots)

    def put(self, slots: Ints, columns: Batch) -> None:
        """Let rows wait in the pools they belong to."""
        for pool, part in self._sorted(slots, columns.qi):
            self._open(pool, int(part[0]), columns)
            self._fill(pool, part)
            if pool.count > LARGEST:
                self._divide(pool, columns.qi)

    def park(self, block: Ints, columns: Batch) -> None:
        """Let a block wait as a whole, in the pool of its first row."""
        pool = self._by_number[int(self._places(block[:1], columns.qi)[0])]
        self._open(pool, int(block[np.argmin(columns.serial[block])]), columns)
        parked = Parked(block, pool)
        pool.parked.append(parked)
        self._parked_in.update(dict.fromkeys(block.tolist(), parked))

    def take(self, slots: Ints) -> Ints:
        """Remove rows; return those left of the blocks that are broken by it, which are in no pool any more."""
        numbers = self._lists.list_of[slots]
        for number, count in zip(*np.unique(numbers[numbers >= 0], return_counts=True), strict=True):
            self._by_number[int(number)].count -= int(count)
        take_all(self._lists, slots)
        if not self._parked_in:
            return _NONE
        broken = {id(found): found for slot in slots.tolist() if (found := self._parked_in.get(slot)) is not None}
        for parked in broken.values():
            parked.pool.parked.remove(parked)
            for slot in parked.slots.tolist():
                del self._parked_in[slot]
        left = np.concatenate([_NONE, *(parked.slots for parked in broken.values())])
        return np.asarray(left[~np.isin(left, slots)])

    def of(self, slot: int) -> Pool:
        """Return the pool of a waiting row."""
        parked = self._parked_in.get(slot)
        return self._by_number[int(self._lists.list_of[slot])] if parked is None else parked.pool

    def rows(self, pool: Pool) -> Ints:
        """Return the rows of a pool that wait by themselves."""
        return members(self._lists, pool.number, pool.count)

    def leaves(self, region: Pool | None = None) -> list[Pool]:
        """Return the pools of a region, or of all, that hold rows or blocks, neighbours side by side."""
        return [pool for pool in _leaves(region or self.root) if pool.count or pool.parked]

    def around(self, pool: Pool, rows: int) -> Pool:
        """Return the smallest region that holds a pool and so many rows, or everything."""
        while pool.parent is not None and sum(leaf.count for leaf in self.leaves(pool)) < rows:
            pool = pool.parent
        return pool

    def _open(self, pool: Pool, slot: int, columns: Batch) -> None:
        """Note the first row of a pool that was empty."""
        if not pool.count and not pool.parked:
            pool.since = int(columns.serial[slot]), float(columns.arrived[slot])
            pool.stuck = False

    def _fill(self, pool: Pool, slots: Ints) -> None:
        put_all(self._lists, slots, np.full(len(slots), pool.number))
        pool.count += len(slots)

    def _places(self, slots: Ints, qi: Ints) -> Ints:
        """Return the number of the leaf that each row belongs to."""
        at, moving = np.zeros(len(slots), dtype=np.int64), np.arange(len(slots))
        while len(moving := moving[self._cuts[at[moving], 0] >= 0]):
            column, cut, below, above = self._cuts[at[moving]].T
            at[moving] = np.where(qi[slots[moving], column] >= cut, above, below)
        return at

    def _sorted(self, slots: Ints, qi: Ints) -> list[tuple[Pool, Ints]]:
        """Return the leaves that rows belong to, with their rows in the order given."""
        if not len(slots):
            return []
        at = self._places(slots, qi)
        order = np.argsort(at, kind="stable")
        starts = np.flatnonzero(np.diff(at[order])) + 1
        pools = [self._by_number[number] for number in at[order[np.concatenate([[0], starts])]].tolist()]
        return list(zip(pools, cut(slots[order], starts.tolist()), strict=True))

    def _divide(self, pool: Pool, qi: Ints) -> None:
        """Cut a pool in two, if there is a place for it."""
        rows = self.rows(pool)
        found = self._best_cut(qi[rows])
        if found is None:
            return
        pool.column, pool.cut = found
        first = len(self._by_number)
        pool.sides = Pool(first, pool, since=pool.since), Pool(first + 1, pool, since=pool.since)
        self._by_number += pool.sides
        if len(self._lists.head) < first + 2:
            self._lists = enlarged(self._lists, 2 * (first + 2), len(self._lists.list_of))
            more = np.full((len(self._lists.head) - len(self._cuts), 4), -1, dtype=np.int64)
            self._cuts = np.concatenate([self._cuts, more])
        self._cuts[pool.number] = pool.column, pool.cut, first, first + 1
        take_all(self._lists, rows)
        pool.count = 0
        for side, part in self._sorted(rows, qi):
            self._fill(side, part)
        for parked in pool.parked:
            parked.pool = self._by_number[int(self._places(parked.slots[:1], qi)[0])]
            parked.pool.parked.append(parked)
        pool.parked = []

    def _best_cut(self, qi: Ints) -> tuple[int, int] | None:
        """Return the column and position that part the rows most: where two rows apart cost most, by the widest gap."""
        other = np.roll(qi, len(qi) // 2, axis=0)
        low, high = np.minimum(qi, other), np.maximum(qi, other)
        telling = [
            float(self._weights[q] * hierarchy.loss(low[:, q], high[:, q]).mean())
            for q, hierarchy in enumerate(self._hierarchies)
        ]
        for q in np.argsort(-np.array(telling), kind="stable").tolist():
            points, counts = np.unique(qi[:, q], return_counts=True)
            below = np.cumsum(counts)[:-1] / len(qi)
            fair = np.flatnonzero((below >= EVEN) & (below <= 1 - EVEN))
            if len(fair):
                gap = np.asarray(self._hierarchies[q].loss(points[fair], points[fair + 1]))
                best = fair[np.lexsort((np.abs(below[fair] - 0.5), -np.round(gap, 9)))[0]]
                return q, int(points[best + 1])
        return None


def _leaves(pool: Pool) -> list[Pool]:
    return [pool] if pool.sides is None else [leaf for side in pool.sides for leaf in _leaves(side)]
