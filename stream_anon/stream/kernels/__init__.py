"""The hot loops of the stream algorithms, each twice: compiled, and in numpy for where numba is not installed.

Both give the same results to the last bit, ties included: of equal choices the one that comes first is taken.
"""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints
from stream_anon.core.kernels import COMPILED, Prices
from stream_anon.stream.kernels.boxes import (
    Columns,
    Counted,
    box_price_compiled,
    union_prices_compiled,
    widened_prices_compiled,
)
from stream_anon.stream.kernels.growth import grow_compiled, grow_dense_compiled
from stream_anon.stream.kernels.hardness import STEPS
from stream_anon.stream.kernels.rounds import OLD, YOUNG, Due, JoinRule, Memory, rounds_compiled

TRIES = 16
"""Candidates of which a dense cluster looks for the best: more of them gain little."""

NEVER = Due(np.iinfo(np.int64).max, np.iinfo(np.int64).max, np.inf, -np.inf)
"""Nothing is due, whatever arrives."""

__all__ = ["NEVER", "OLD", "YOUNG", "Columns", "Counted", "Due", "JoinRule", "Kernels", "Memory"]


class Kernels:
    """The hot loops over one set of prices; `compiled=False` selects the numpy versions."""

    def __init__(self, prices: Prices, hierarchies: list[Hierarchy], compiled: bool = COMPILED) -> None:
        self.prices = prices
        self._hierarchies = hierarchies
        self._compiled = compiled and COMPILED
        self._log2 = np.zeros(1)

    def union_prices(self, qi: Ints, slots: Ints, low: Ints, high: Ints) -> Floats:
        """Return the price of the box widened to hold each row."""
        if self._compiled:
            return union_prices_compiled(self.prices, qi, slots, low, high)
        rows = qi[slots]
        return self.box_prices(np.minimum(rows, low), np.maximum(rows, high))

    def widened_prices(self, qi: Ints, slot: int, low: Ints, high: Ints) -> Floats:
        """Return the price of each box widened to hold one row."""
        if self._compiled:
            return widened_prices_compiled(self.prices, qi, slot, low, high)
        return self.box_prices(np.minimum(low, qi[slot]), np.maximum(high, qi[slot]))

    def box_prices(self, low: Ints, high: Ints) -> Floats:
        """Return the price of each box."""
        total = np.zeros(len(low))
        for q, hierarchy in enumerate(self._hierarchies):
            total += self.prices.weight[q] * hierarchy.loss(low[:, q], high[:, q])
        return total

    def box_price(self, low: Ints, high: Ints) -> float:
        """Return the price of one box."""
        if self._compiled:
            return box_price_compiled(self.prices, low, high)
        return float(self.box_prices(low[None], high[None])[0])

    def grow(
        self, columns: Columns, seed: Ints, candidates: Ints, bonus: Floats, need: Counted, limit: float = np.inf
    ) -> tuple[Ints, float]:
        """Add candidates to the seed, each time the one of least CAILDistance minus its bonus, until the need is met.

        People already in are passed over. When as many different values as seats are missing, only rows that bring one
        are taken. No members are returned if that cannot be done with distances up to `limit`; also the box's price.
        """
        log2 = self._logarithms(len(seed) + len(candidates) + 1)
        if self._compiled:
            return grow_compiled(self.prices, columns, seed, candidates, bonus, need, limit, log2)
        return self._grow(columns, seed, candidates, bonus, need, limit, log2)

    def grow_dense(self, columns: Columns, seed: int, candidates: Ints, need: Counted) -> tuple[Ints, float]:
        """Grow a large group: take first whatever lies in the box, then widen it towards the densest part.

        Of the `TRIES` rows of least CAILDistance the one is taken for which the distance over the square root of the
        rows that would then lie inside is least; no more of them count than are needed.
        """
        log2 = self._logarithms(len(candidates) + 2)
        if self._compiled:
            return grow_dense_compiled(self.prices, columns, seed, candidates, need, TRIES, log2)
        return self._grow_dense(columns, seed, candidates, need, log2)

    def _grow_dense(
        self, columns: Columns, seed: int, candidates: Ints, need: Counted, log2: Floats
    ) -> tuple[Ints, float]:
        rows, subjects = columns.qi[candidates], columns.subject[candidates]
        members = [seed]
        low, high = columns.qi[seed].copy(), columns.qi[seed].copy()
        loss = self.box_price(low, high)
        people = {int(columns.subject[seed])}
        seen = [{int(columns.sensitive[seed, s])} for s in range(len(need.values))]
        while True:
            lacking = [int(wanted) - len(values) for wanted, values in zip(need.values, seen, strict=True)]
            if len(people) >= need.k and max(lacking, default=0) <= 0:
                return np.array(members, dtype=np.int64), loss
            seats = max(need.k - len(people), 1)
            inside = np.isin(subjects, list(people))
            shut = inside
            urgent = [s for s, lack in enumerate(lacking) if lack > 0 and lack >= seats]
            if urgent:
                known = [np.isin(columns.sensitive[candidates, s], list(seen[s])) for s in urgent]
                shut = inside | np.logical_and.reduce(known)
            cost = self.box_prices(np.minimum(rows, low), np.maximum(rows, high))
            distance = np.where(shut, np.inf, cost + (cost - loss) * log2[len(members)])
            best = int(np.argmin(distance)) if len(distance) else -1
            if best < 0 or distance[best] == np.inf:
                return np.empty(0, dtype=np.int64), loss
            if cost[best] > loss:
                nearest = np.argsort(distance, kind="stable")[:TRIES]
                nearest = nearest[distance[nearest] < np.inf]
                crowds = [
                    np.count_nonzero(
                        ~inside
                        & (rows >= np.minimum(low, rows[i])).all(axis=1)
                        & (rows <= np.maximum(high, rows[i])).all(axis=1)
                    )
                    for i in nearest
                ]
                best = int(nearest[np.argmin(distance[nearest] / np.sqrt(np.minimum(crowds, float(seats))))])
            slot = int(candidates[best])
            members.append(slot)
            people.add(int(columns.subject[slot]))
            for s, values in enumerate(seen):
                values.add(int(columns.sensitive[slot, s]))
            if cost[best] > loss:
                loss = float(cost[best])
                low, high = np.minimum(low, rows[best]), np.maximum(high, rows[best])

    def _grow(
        self,
        columns: Columns,
        seed: Ints,
        candidates: Ints,
        bonus: Floats,
        need: Counted,
        limit: float,
        log2: Floats,
    ) -> tuple[Ints, float]:
        members = seed.tolist()
        rows = columns.qi[seed]
        low, high = rows.min(axis=0), rows.max(axis=0)
        loss = self.box_price(low, high)
        people = set(columns.subject[seed].tolist())
        seen = [set(columns.sensitive[seed, s].tolist()) for s in range(len(need.values))]
        closed = np.isin(columns.subject[candidates], list(people))
        while True:
            lacking = [int(wanted) - len(values) for wanted, values in zip(need.values, seen, strict=True)]
            if len(people) >= need.k and max(lacking, default=0) <= 0:
                return np.array(members, dtype=np.int64), loss
            seats = max(need.k - len(people), 1)
            shut = closed
            urgent = [s for s, lack in enumerate(lacking) if lack > 0 and lack >= seats]
            if urgent:
                known = [np.isin(columns.sensitive[candidates, s], list(seen[s])) for s in urgent]
                shut = closed | np.logical_and.reduce(known)
            prices = self.union_prices(columns.qi, candidates, low, high)
            distance = prices + (prices - loss) * log2[len(members)]
            score = np.where(shut | (distance > limit), np.inf, distance - bonus)
            best = int(np.argmin(score)) if len(score) else -1
            if best < 0 or score[best] == np.inf:
                return np.empty(0, dtype=np.int64), loss
            slot = int(candidates[best])
            members.append(slot)
            people.add(int(columns.subject[slot]))
            for s, values in enumerate(seen):
                values.add(int(columns.sensitive[slot, s]))
            closed = closed | (columns.subject[candidates] == columns.subject[slot])
            loss = float(prices[best])
            low, high = np.minimum(low, columns.qi[slot]), np.maximum(high, columns.qi[slot])

    def arrive(
        self, columns: Columns, queue: Ints, first: int, memory: Memory, hardness: Floats, need: Counted, limit: float
    ) -> tuple[int, Ints]:
        """Let the rows `queue[first:]` arrive one by one behind `queue[:first]`, until one of them finds a cluster.

        The hardness of each is written down: its average price with the nearest quarter of the last arrivals. Around
        each newcomer a cluster is grown of earlier rows within `limit`; the first that meets the need ends the call
        (none is tried if the limit is negative). How many arrived, and that cluster.
        """
        if self._compiled:
            alone = memory._replace(losses=np.zeros(1), released=0)
            rule, log2 = JoinRule(limit, 0.0, 0.0), self._logarithms(len(queue) + 1)
            taken, members, _, _ = rounds_compiled(
                self.prices, columns, queue, first, -1, NEVER, alone, hardness, need, rule, True, log2
            )
            return taken, members
        sample, seen = memory.sample, memory.seen
        for n in range(first, len(queue)):
            slot = int(queue[n])
            point = columns.qi[slot]
            hardness[slot] = self._hardness(point, sample[:, : min(seen, sample.shape[1])])
            sample[:, seen % sample.shape[1]] = point
            seen += 1
            if limit < 0.0:
                continue
            near = queue[:n][self._pair_prices(columns.qi[queue[:n]], point) <= limit]
            if len(near) >= need.k - 1:
                members, _ = self.grow(columns, queue[n : n + 1], near, np.zeros(len(near)), need, limit)
                if len(members):
                    return n + 1 - first, members
        return len(queue) - first, np.empty(0, dtype=np.int64)

    def arrive_batch(
        self,
        columns: Columns,
        queue: Ints,
        first: int,
        latest: int,
        due: Due,
        memory: Memory,
        hardness: Floats,
        need: Counted,
        rule: JoinRule,
    ) -> tuple[int, Ints, Ints, int] | None:
        """Run whole rounds at once, if compiled: `arrive`, and the completion of every row that is or becomes due.

        `latest` is the number of the arrival before. Ends early at a due row without a group. Returns how many arrived;
        the rows of all groups, one group after the other; their sizes, negative for those completed at a deadline; how
        many groups were ever released.
        """
        if not self._compiled:
            return None
        log2 = self._logarithms(len(queue) + 1)
        return rounds_compiled(
            self.prices, columns, queue, first, latest, due, memory, hardness, need, rule, False, log2
        )

    def _pair_prices(self, rows: Ints, point: Ints) -> Floats:
        """Return the price of each row with one other, summed over the columns from the most to the least telling."""
        total = np.zeros(len(rows))
        for q in np.argsort(-self.prices.weight * self.prices.least, kind="stable"):
            low, high = np.minimum(rows[:, q], point[q]), np.maximum(rows[:, q], point[q])
            total += self.prices.weight[q] * self._hierarchies[q].loss(low, high)
        return total

    def _hardness(self, point: Ints, sample: Ints) -> float:
        wanted = (sample.shape[1] + 3) // 4
        if not wanted:
            return 0.0
        steps = (np.minimum(self._pair_prices(sample.T, point), 1.0) * STEPS).astype(np.int64)
        return int(np.sort(steps)[:wanted].sum()) / (wanted * STEPS)

    def _logarithms(self, size: int) -> Floats:
        """Return binary logarithms of 0 .. size, the first one as 0; one table for both versions."""
        if len(self._log2) <= size:
            self._log2 = np.log2(np.maximum(np.arange(2 * size), 1))
        return self._log2
