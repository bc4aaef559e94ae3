"""Compiled growth of a cluster, row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import Prices, compiled, inner
from stream_anon.stream.kernels.boxes import Columns, Counted, add_columns, gather, union, unions, widen_column

Flags = npt.NDArray[np.bool_]


@inner
def is_in(subject: Ints, members: Ints, count: int, person: int) -> bool:
    """Tell whether one of the first `count` members is about the person."""
    for i in range(count):  # noqa: SIM110 - `any` with a generator does not compile
        if subject[members[i]] == person:
            return True
    return False


@inner
def is_new(sensitive: Ints, s: int, members: Ints, count: int, slot: int) -> bool:
    """Tell whether none of the first `count` members has the row's value in column s."""
    for i in range(count):  # noqa: SIM110
        if sensitive[members[i], s] == sensitive[slot, s]:
            return False
    return True


@inner
def widen(qi: Ints, slot: int, low: Ints, high: Ints) -> None:
    """Widen a box in place to hold a row."""
    for q in range(len(low)):
        low[q] = min(low[q], qi[slot, q])
        high[q] = max(high[q], qi[slot, q])


@inner
def count_new(sensitive: Ints, members: Ints, count: int, slot: int, distinct: Ints) -> None:
    """Count the values of a row that none of the members has."""
    for s in range(len(distinct)):
        if is_new(sensitive, s, members, count, slot):
            distinct[s] += 1


@inner
def brings_one(sensitive: Ints, members: Ints, count: int, slot: int, wanted: Ints, distinct: Ints, seats: int) -> bool:
    """Tell whether a row has a new value in a column where as many are lacking as seats are left."""
    for s in range(len(distinct)):
        lacking = wanted[s] - distinct[s]
        if lacking > 0 and lacking >= seats and is_new(sensitive, s, members, count, slot):
            return True
    return False


class Scratch(NamedTuple):
    """Reusable work arrays for growing clusters among a number of candidates."""

    codes: Ints
    costs: Floats
    total: Floats
    score: Floats
    members: Ints
    low: Ints
    high: Ints
    distinct: Ints


@compiled
def scratch(columns: int, sensitive: int, most: int) -> Scratch:
    """Allocate work arrays for clusters of up to `most` rows."""
    return Scratch(
        np.empty((columns, most), dtype=np.int64),
        np.empty((columns, most)),
        np.empty(most),
        np.empty(most),
        np.empty(most, dtype=np.int64),
        np.empty(columns, dtype=np.int64),
        np.empty(columns, dtype=np.int64),
        np.empty(sensitive, dtype=np.int64),
    )


@inner
def open_up(
    facts: Ints,
    values: Floats,
    weight: Floats,
    codes: Ints,
    left: int,
    chosen: int,
    low: Ints,
    high: Ints,
    costs: Floats,
    total: Floats,
) -> None:
    """Widen a box in place to hold the chosen candidate, and update its cost with each other where it is wider."""
    wider = False
    for q in range(len(low)):
        at = codes[q, chosen]
        if not low[q] <= at <= high[q]:
            low[q], high[q] = min(low[q], at), max(high[q], at)
            widen_column(facts, values, weight, q, low[q], high[q], codes[q], left, costs[q])
            wider = True
    if wider:
        add_columns(costs, left, total)


@inner
def rate(total: Floats, bonus: Floats, left: int, loss: float, scale: float, score: Floats) -> None:
    """Compute CAILDistance minus bonus of every candidate."""
    for i in range(left):
        score[i] = total[i] + (total[i] - loss) * scale - bonus[i]


@inner
def grow_here(
    prices: Prices,
    columns: Columns,
    seed: Ints,
    candidates: Ints,
    left: int,
    bonus: Floats,
    need: Counted,
    limit: float,
    log2: Floats,
    room: Scratch,
) -> tuple[int, float]:
    """Grow a cluster into `room.members`; return how many they are, 0 if it cannot be done, and the box's price.

    Of the candidates the first `left` count; a bonus of minus infinity shuts one out, and is set for those that are in.
    What a candidate costs can only rise while the box widens: it is asked for again only where what it cost before
    would make it the best.
    """
    facts, values, weight, _ = prices
    qi, subject, sensitive, _, _ = columns
    k, wanted = need
    codes, costs, total, score, members, low, high, distinct = room
    people = count = 0
    for q in range(len(low)):
        low[q] = high[q] = qi[seed[0], q]
    for s in range(len(distinct)):
        distinct[s] = 0
    for slot in seed:
        people += not is_in(subject, members, count, subject[slot])
        count_new(sensitive, members, count, slot, distinct)
        widen(qi, slot, low, high)
        members[count] = slot
        count += 1
    loss = union(facts, values, weight, qi, seed[0], low, high)
    gather(qi, candidates, left, codes)
    unions(facts, values, weight, codes, left, low, high, costs, total)
    while True:
        seats = max(k - people, 1)
        lacking = 0
        for s in range(len(wanted)):
            lacking = max(lacking, wanted[s] - distinct[s])
        if people >= k and lacking <= 0:
            return count, loss
        if limit < np.inf and within(total, bonus, left, limit) < seats:
            return 0, loss
        urgent = lacking > 0 and lacking >= seats
        scale = log2[count]
        rate(total, bonus, left, loss, scale, score)
        best, best_score = -1, np.inf
        for i in range(left):
            if score[i] >= best_score:
                continue
            slot = candidates[i]
            total[i] = union(facts, values, weight, qi, slot, low, high)
            distance = total[i] + (total[i] - loss) * scale
            if distance - bonus[i] >= best_score or distance > limit:
                continue
            if is_in(subject, members, count, subject[slot]):
                bonus[i] = -np.inf
            elif not urgent or brings_one(sensitive, members, count, slot, wanted, distinct, seats):
                best, best_score = i, distance - bonus[i]
        if best < 0:
            return 0, loss
        slot = candidates[best]
        people += 1
        count_new(sensitive, members, count, slot, distinct)
        members[count] = slot
        count += 1
        loss = total[best]
        bonus[best] = -np.inf
        widen(qi, slot, low, high)


@inner
def within(total: Floats, bonus: Floats, left: int, limit: float) -> int:
    """Count the candidates that are not excluded and cost at most `limit`."""
    count = 0
    for i in range(left):
        count += total[i] <= limit and bonus[i] > -np.inf
    return count


@compiled
def grow_compiled(
    prices: Prices,
    columns: Columns,
    seed: Ints,
    candidates: Ints,
    bonus: Floats,
    need: Counted,
    limit: float,
    log2: Floats,
) -> tuple[Ints, float]:
    """Implement `Kernels.grow` with numba."""
    room = scratch(columns.qi.shape[1], len(need.values), len(seed) + len(candidates))
    count, loss = grow_here(prices, columns, seed, candidates, len(candidates), bonus.copy(), need, limit, log2, room)
    return room.members[:count], loss


@inner
def close(subject: Ints, candidates: Ints, person: int, shut: Flags) -> None:
    """Mark all rows about a person."""
    for i in range(len(candidates)):
        shut[i] |= subject[candidates[i]] == person


@inner
def inside(qi: Ints, slot: int, low: Ints, high: Ints, other: int) -> bool:
    """Tell whether a row lies in a box once another row has widened it."""
    for q in range(len(low)):
        at, to = qi[slot, q], qi[other, q]
        if at < min(low[q], to) or at > max(high[q], to):
            return False
    return True


@compiled
def grow_dense_compiled(
    prices: Prices, columns: Columns, seed: int, candidates: Ints, need: Counted, tries: int, log2: Floats
) -> tuple[Ints, float]:
    """Implement `Kernels.grow_dense` with numba."""
    facts, values, weight, _ = prices
    qi, subject, sensitive, _, _ = columns
    k, wanted = need
    members = np.empty(1 + len(candidates), dtype=np.int64)
    members[0] = seed
    low, high = qi[seed].copy(), qi[seed].copy()
    distinct = np.minimum(np.ones(len(wanted), dtype=np.int64), wanted)
    people, count, loss = 1, 1, union(facts, values, weight, qi, seed, low, high)
    codes, costs = np.empty((len(low), len(candidates)), dtype=np.int64), np.empty((len(low), len(candidates)))
    cost, distance = np.empty(len(candidates)), np.empty(len(candidates))
    gather(qi, candidates, len(candidates), codes)
    unions(facts, values, weight, codes, len(candidates), low, high, costs, cost)
    shut = np.zeros(len(candidates), dtype=np.bool_)
    close(subject, candidates, subject[seed], shut)
    while True:
        seats = max(k - people, 1)
        lacking = 0
        for s in range(len(wanted)):
            lacking = max(lacking, wanted[s] - distinct[s])
        if people >= k and lacking <= 0:
            return members[:count], loss
        urgent = lacking > 0 and lacking >= seats
        for i in range(len(candidates)):
            slot = candidates[i]
            distance[i] = np.inf
            if not shut[i] and (not urgent or brings_one(sensitive, members, count, slot, wanted, distinct, seats)):
                distance[i] = cost[i] + (cost[i] - loss) * log2[count]
        best = int(np.argmin(distance)) if len(distance) else -1
        if best < 0 or distance[best] == np.inf:
            return members[:0], loss
        if cost[best] > loss:  # nothing more fits in: of the nearest rows, the one that opens the way for most others
            best_score = np.inf
            for _ in range(tries):
                nearest = int(np.argmin(distance))
                if distance[nearest] == np.inf:
                    break
                crowd = 0
                for i in range(len(candidates)):
                    if not shut[i] and inside(qi, candidates[i], low, high, candidates[nearest]):
                        crowd += 1
                score = distance[nearest] / np.sqrt(float(min(crowd, seats)))
                distance[nearest] = np.inf
                if score < best_score:
                    best, best_score = nearest, score
        slot = candidates[best]
        close(subject, candidates, subject[slot], shut)
        people += 1
        count_new(sensitive, members, count, slot, distinct)
        members[count] = slot
        count += 1
        if cost[best] > loss:
            loss = cost[best]
            open_up(facts, values, weight, codes, len(candidates), best, low, high, costs, cost)
