"""The hot loops of the stream algorithms, each twice: compiled, and in numpy for where numba is not installed.

Both give the same results to the last bit, ties included: of equal choices the one that comes first is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints
from stream_anon.core.kernels import COMPILED, Prices, compiled, inner, price


class Columns(NamedTuple):
    """The columns of a buffer that kernels read."""

    qi: Ints
    subject: Ints
    sensitive: Ints


class Need(NamedTuple):
    """What a kernel can check by itself: k different people, and per sensitive column so many different values."""

    k: int
    values: Ints


@inner
def _union(facts: Ints, values: Floats, weight: Floats, qi: Ints, slot: int, low: Ints, high: Ints) -> float:
    """The price of a box widened to hold a row."""
    total = 0.0
    for q in range(len(weight)):
        at = qi[slot, q]
        total += weight[q] * price(facts, values, q, min(low[q], at), max(high[q], at))
    return total


@compiled
def union_prices_compiled(prices: Prices, qi: Ints, slots: Ints, low: Ints, high: Ints) -> Floats:
    """See `Kernels.union_prices`."""
    facts, values, weight = prices
    result = np.empty(len(slots))
    for i in range(len(slots)):
        result[i] = _union(facts, values, weight, qi, slots[i], low, high)
    return result


@compiled
def widened_prices_compiled(prices: Prices, qi: Ints, slot: int, low: Ints, high: Ints) -> Floats:
    """See `Kernels.widened_prices`."""
    facts, values, weight = prices
    result = np.empty(len(low))
    for c in range(len(low)):
        result[c] = _union(facts, values, weight, qi, slot, low[c], high[c])
    return result


@inner
def _is_in(subject: Ints, members: Ints, count: int, person: int) -> bool:
    """Whether one of the first `count` members is about the person."""
    for i in range(count):  # noqa: SIM110 - `any` with a generator does not compile
        if subject[members[i]] == person:
            return True
    return False


@inner
def _is_new(sensitive: Ints, s: int, members: Ints, count: int, slot: int) -> bool:
    """Whether none of the first `count` members has the row's value in column s."""
    for i in range(count):  # noqa: SIM110
        if sensitive[members[i], s] == sensitive[slot, s]:
            return False
    return True


@inner
def _widen(qi: Ints, slot: int, low: Ints, high: Ints) -> None:
    """Widen a box in place to hold a row."""
    for q in range(len(low)):
        low[q] = min(low[q], qi[slot, q])
        high[q] = max(high[q], qi[slot, q])


@inner
def _count_new(sensitive: Ints, members: Ints, count: int, slot: int, distinct: Ints) -> None:
    """Count the values of a row that none of the members has."""
    for s in range(len(distinct)):
        if _is_new(sensitive, s, members, count, slot):
            distinct[s] += 1


@inner
def _brings_one(
    sensitive: Ints, members: Ints, count: int, slot: int, wanted: Ints, distinct: Ints, seats: int
) -> bool:
    """Whether a row has a new value in a column where as many are lacking as seats are left."""
    for s in range(len(distinct)):
        lacking = wanted[s] - distinct[s]
        if lacking > 0 and lacking >= seats and _is_new(sensitive, s, members, count, slot):
            return True
    return False


@compiled
def grow_compiled(
    prices: Prices,
    columns: Columns,
    seed: Ints,
    candidates: Ints,
    bonus: Floats,
    need: Need,
    limit: float,
    log2: Floats,
) -> tuple[Ints, float]:
    """See `Kernels.grow`.

    Prices only rise while a box widens, so the price a candidate had when last computed is a lower bound: most
    candidates cost one comparison per step.
    """
    facts, values, weight = prices
    qi, subject, sensitive = columns
    k, wanted = need
    members = np.empty(len(seed) + len(candidates), dtype=np.int64)
    low, high = qi[seed[0]].copy(), qi[seed[0]].copy()
    distinct = np.zeros(len(wanted), dtype=np.int64)
    people = 0
    count = 0
    for slot in seed:
        if not _is_in(subject, members, count, subject[slot]):
            people += 1
        _count_new(sensitive, members, count, slot, distinct)
        _widen(qi, slot, low, high)
        members[count] = slot
        count += 1
    loss = _union(facts, values, weight, qi, seed[0], low, high)
    bound = np.zeros(len(candidates))
    while True:
        seats = max(k - people, 1)
        lacking = 0
        for s in range(len(wanted)):
            lacking = max(lacking, wanted[s] - distinct[s])
        if people >= k and lacking <= 0:
            return members[:count], loss
        urgent = lacking > 0 and lacking >= seats
        scale = log2[count]
        best, best_score, best_price = -1, np.inf, 0.0
        for i in range(len(candidates)):
            at_least = max(bound[i], loss)
            if at_least + (at_least - loss) * scale - bonus[i] >= best_score:
                continue
            slot = candidates[i]
            if _is_in(subject, members, count, subject[slot]):
                bound[i] = np.inf  # never again: this person is in
                continue
            if urgent and not _brings_one(sensitive, members, count, slot, wanted, distinct, seats):
                continue
            bound[i] = _union(facts, values, weight, qi, slot, low, high)
            distance = bound[i] + (bound[i] - loss) * scale
            if distance <= limit and distance - bonus[i] < best_score:
                best, best_score, best_price = i, distance - bonus[i], bound[i]
        if best < 0:
            return members[:0], loss
        slot = candidates[best]
        people += 1
        _count_new(sensitive, members, count, slot, distinct)
        _widen(qi, slot, low, high)
        members[count] = slot
        count += 1
        loss = best_price


class Kernels:
    """The hot loops over one set of prices; `compiled=False` takes the numpy versions."""

    def __init__(self, prices: Prices, hierarchies: list[Hierarchy], compiled: bool = COMPILED) -> None:
        self.prices = prices
        self._hierarchies = hierarchies
        self._compiled = compiled and COMPILED
        self._log2 = np.zeros(1)

    def union_prices(self, qi: Ints, slots: Ints, low: Ints, high: Ints) -> Floats:
        """The price of the box widened to hold each row."""
        if self._compiled:
            return union_prices_compiled(self.prices, qi, slots, low, high)
        rows = qi[slots]
        return self.box_prices(np.minimum(rows, low), np.maximum(rows, high))

    def widened_prices(self, qi: Ints, slot: int, low: Ints, high: Ints) -> Floats:
        """The price of each box widened to hold one row."""
        if self._compiled:
            return widened_prices_compiled(self.prices, qi, slot, low, high)
        return self.box_prices(np.minimum(low, qi[slot]), np.maximum(high, qi[slot]))

    def box_prices(self, low: Ints, high: Ints) -> Floats:
        """The price of each box."""
        total = np.zeros(len(low))
        for q, hierarchy in enumerate(self._hierarchies):
            total += self.prices.weight[q] * hierarchy.loss(low[:, q], high[:, q])
        return total

    def box_price(self, low: Ints, high: Ints) -> float:
        """The price of one box."""
        return float(self.box_prices(low[None], high[None])[0])

    def grow(
        self, columns: Columns, seed: Ints, candidates: Ints, bonus: Floats, need: Need, limit: float = np.inf
    ) -> tuple[Ints, float]:
        """Add candidates to the seed, each time the one of least CAILDistance minus its bonus, until the need is met.

        People already in are passed over. When as many different values as seats are missing, only rows that bring one
        are taken. No members are returned if that cannot be done with distances up to `limit`; also the box's price.
        """
        log2 = self._logarithms(len(seed) + len(candidates) + 1)
        if self._compiled:
            return grow_compiled(self.prices, columns, seed, candidates, bonus, need, limit, log2)
        return self._grow(columns, seed, candidates, bonus, need, limit, log2)

    def _grow(
        self,
        columns: Columns,
        seed: Ints,
        candidates: Ints,
        bonus: Floats,
        need: Need,
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

    def _logarithms(self, size: int) -> Floats:
        """Binary logarithms of 0 .. size, the first one as 0; one table for both versions."""
        if len(self._log2) <= size:
            self._log2 = np.log2(np.maximum(np.arange(2 * size), 1))
        return self._log2
