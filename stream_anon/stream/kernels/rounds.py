"""Rows arriving one after the other, compiled: newcomers open clusters, due rows are completed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import HIGHEST, KIND, LINEAR, SIZE, START, TABLE, Prices, compiled, inner, line, price
from stream_anon.stream.kernels.boxes import Columns, Need
from stream_anon.stream.kernels.growth import grow_compiled

STEPS = 256
"""Steps in which hardness is counted: finer than it is exact, and whole numbers sum the same in any order."""


class Taste(NamedTuple):
    """What makes a cluster good enough, and company welcome: see `TransientClusters`. A negative threshold adapts."""

    threshold: float
    patience: float
    opportunity: float


YOUNG, OLD = 0.75, 1.25
"""How much a row's hardness counts when it has just come and when it is due itself: what is due soon is more urgent."""


@inner
def near_rows(
    facts: Ints,
    values: Floats,
    weight: Floats,
    order: Ints,
    qi: Ints,
    slot: int,
    queue: Ints,
    length: int,
    limit: float,
    near: Ints,
    total: Floats,
) -> int:
    """Which of the first rows of a queue cost at most `limit` together with one row; how many, in their order.

    Column by column in `order`, dropping rows as soon as they exceed the limit.
    """
    for i in range(length):
        total[i] = 0.0
    count = keep(facts, values, weight, order[0], qi, slot, queue, length, limit, near, total)
    for place in range(1, len(order)):
        count = keep(facts, values, weight, order[place], qi, slot, near, count, limit, near, total)
    return count


@inner
def keep(
    facts: Ints,
    values: Floats,
    weight: Floats,
    q: int,
    qi: Ints,
    slot: int,
    rows: Ints,
    length: int,
    limit: float,
    near: Ints,
    total: Floats,
) -> int:
    """One column of `near_rows`: add what it costs, and keep the rows that stay within the limit."""
    at, share, kept = qi[slot, q], weight[q], 0
    if facts[q, KIND] == TABLE:  # the table is symmetric: no need to know which is lower
        row = facts[q, START] + at * facts[q, SIZE]
        for i in range(length):
            cost = total[i] + share * values[row + qi[rows[i], q]]
            near[kept] = rows[i]
            total[kept] = cost
            kept += cost <= limit
    else:
        for i in range(length):
            other = qi[rows[i], q]
            cost = total[i] + share * price(facts, values, q, min(at, other), max(at, other))
            near[kept] = rows[i]
            total[kept] = cost
            kept += cost <= limit
    return kept


@inner
def hardness_of(
    facts: Ints,
    values: Floats,
    weight: Floats,
    order: Ints,
    qi: Ints,
    slot: int,
    sample: Ints,
    known: int,
    total: Floats,
    steps: Ints,
) -> float:
    """See `Kernels.arrive`. Prices are counted in whole steps, so that the nearest are found without sorting."""
    for i in range(known):
        total[i] = 0.0
    for q in order:
        at, share = qi[slot, q], weight[q]
        if facts[q, KIND] == TABLE:  # the table is symmetric: no need to know which is lower
            row = facts[q, START] + at * facts[q, SIZE]
            for i in range(known):
                total[i] += share * values[row + sample[q, i]]
        elif facts[q, KIND] == LINEAR:
            slope, highest = values[facts[q, START]], facts[q, HIGHEST]
            for i in range(known):
                total[i] += share * line(slope, highest, min(at, sample[q, i]), max(at, sample[q, i]))
        else:
            for i in range(known):
                total[i] += share * price(facts, values, q, min(at, sample[q, i]), max(at, sample[q, i]))
    for step in range(STEPS + 1):
        steps[step] = 0
    for i in range(known):
        steps[int(max(min(total[i], 1.0), 0.0) * STEPS)] += 1
    wanted = (known + 3) // 4
    left, sum_ = wanted, 0
    for step in range(STEPS + 1):
        count = min(left, steps[step])
        sum_ += step * count
        left -= count
        if left == 0:
            break
    return sum_ / (wanted * STEPS) if wanted else 0.0


@compiled
def arrive_compiled(
    prices: Prices,
    columns: Columns,
    queue: Ints,
    first: int,
    sample: Ints,
    seen: int,
    hardness: Floats,
    need: Need,
    limit: float,
    log2: Floats,
) -> tuple[int, Ints]:
    """See `Kernels.arrive`."""
    facts, values, weight, least = prices
    qi = columns.qi
    near = np.empty(len(queue), dtype=np.int64)
    total = np.empty(len(queue))
    order = np.argsort(-weight * least, kind="mergesort")
    costs = np.empty(sample.shape[1])
    steps = np.empty(STEPS + 1, dtype=np.int64)
    for n in range(first, len(queue)):
        slot = queue[n]
        known = min(seen, sample.shape[1])
        hardness[slot] = hardness_of(facts, values, weight, order, qi, slot, sample, known, costs, steps)
        for q in range(len(weight)):
            sample[q, seen % sample.shape[1]] = qi[slot, q]
        seen += 1
        if limit < 0.0:
            continue
        count = near_rows(facts, values, weight, order, qi, slot, queue, n, limit, near, total)
        if count >= need.k - 1:
            members, _ = grow_compiled(
                prices, columns, queue[n : n + 1], near[:count], np.zeros(count), need, limit, log2
            )
            if len(members):
                return n + 1 - first, members
    return len(queue) - first, near[:0]


@inner
def limit_of(threshold: float, patience: float, losses: Floats, released: int) -> float:
    """Within what distance clusters form: see `TransientClusters`. Losses are added in the order of their ring."""
    if threshold >= 0.0 or released == 0:
        return threshold
    known = min(released, len(losses))
    total = 0.0
    for i in range(known):
        total += losses[i]
    return patience * (total / known)


@inner
def drop(queue: Ints, length: int, gone: Ints) -> int:
    """Take slots out of a queue, keeping its order; the new length."""
    kept = 0
    for i in range(length):
        stays = True
        for slot in gone:
            stays &= queue[i] != slot
        queue[kept] = queue[i]
        kept += stays
    return kept


@compiled
def rush_compiled(
    prices: Prices,
    columns: Columns,
    serial: Ints,
    queue: Ints,
    first: int,
    bound: int,
    sample: Ints,
    seen: int,
    hardness: Floats,
    losses: Floats,
    released: int,
    need: Need,
    taste: Taste,
    log2: Floats,
) -> tuple[int, Ints, Ints, int]:
    """See `Kernels.rush`."""
    facts, values, weight, least = prices
    qi = columns.qi
    order = np.argsort(-weight * least, kind="mergesort")
    waiting = queue.copy()
    length = first
    near, total, bonus = np.empty(len(queue), dtype=np.int64), np.empty(len(queue)), np.empty(len(queue))
    nothing = np.zeros(len(queue))
    costs, steps = np.empty(sample.shape[1]), np.empty(STEPS + 1, dtype=np.int64)
    chosen, sizes = np.empty(len(queue), dtype=np.int64), np.empty(len(queue), dtype=np.int64)
    filled, groups = 0, 0
    limit = limit_of(taste.threshold, taste.patience, losses, released)
    for n in range(first, len(queue)):
        slot = queue[n]
        known = min(seen, sample.shape[1])
        hardness[slot] = hardness_of(facts, values, weight, order, qi, slot, sample, known, costs, steps)
        for q in range(len(weight)):
            sample[q, seen % sample.shape[1]] = qi[slot, q]
        seen += 1
        placed = False
        if limit >= 0.0:
            count = near_rows(facts, values, weight, order, qi, slot, waiting, length, limit, near, total)
            if count >= need.k - 1:
                members, loss = grow_compiled(
                    prices, columns, queue[n : n + 1], near[:count], nothing, need, limit, log2
                )
                if len(members):
                    losses[released % len(losses)] = loss
                    released += 1
                    limit = limit_of(taste.threshold, taste.patience, losses, released)
                    chosen[filled : filled + len(members)] = members
                    filled += len(members)
                    sizes[groups] = len(members)
                    groups += 1
                    length = drop(waiting, length, members)
                    placed = True
        if not placed:
            waiting[length] = slot
            length += 1
        latest = serial[queue[n]]
        while length and latest - serial[waiting[0]] >= bound:
            span = max(latest - serial[waiting[0]], 1)
            for i in range(1, length):
                age = (latest - serial[waiting[i]]) / span
                bonus[i] = taste.opportunity * hardness[waiting[i]] * (YOUNG + (OLD - YOUNG) * age)
            members, loss = grow_compiled(
                prices, columns, waiting[:1].copy(), waiting[1:length], bonus[1:], need, np.inf, log2
            )
            if not len(members):
                return n + 1 - first, chosen[:filled], sizes[:groups], released
            losses[released % len(losses)] = loss
            released += 1
            limit = limit_of(taste.threshold, taste.patience, losses, released)
            chosen[filled : filled + len(members)] = members
            filled += len(members)
            sizes[groups] = -len(members)
            groups += 1
            length = drop(waiting, length, members)
    return len(queue) - first, chosen[:filled], sizes[:groups], released
