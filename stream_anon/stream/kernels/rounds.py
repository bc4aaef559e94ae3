"""Compiled rounds of arrivals: new rows open clusters, due rows are completed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import Prices, compiled, inner
from stream_anon.stream.kernels.boxes import Columns, Counted
from stream_anon.stream.kernels.growth import Flags, grow_here, scratch
from stream_anon.stream.kernels.hardness import STEPS, hardness_of
from stream_anon.stream.kernels.near import alike, key_of, near_rows, rekey

YOUNG, OLD = 0.75, 1.25
"""How much a row's hardness counts when it has just come and when it is due itself: what is due soon is more urgent."""


class JoinRule(NamedTuple):
    """The rule for forming clusters and preferring candidates: see `Cail`. A negative threshold adapts."""

    threshold: float
    patience: float
    opportunity: float


class Due(NamedTuple):
    """The rule for when a row is due: after so many arrivals or, once it saw `enough`, so many seconds before `now`."""

    arrivals: int
    enough: int
    seconds: float
    now: float


class Memory(NamedTuple):
    """The recent past: a ring of the last of `seen` arrivals, and of the losses of `released` groups."""

    sample: Ints
    seen: int
    losses: Floats
    released: int


@inner
def limit_of(threshold: float, patience: float, losses: Floats, released: int) -> float:
    """Return within what distance clusters form: see `Cail`. Losses are added in the order of their ring."""
    if threshold >= 0.0 or released == 0:
        return threshold
    known = min(released, len(losses))
    total = 0.0
    for i in range(known):
        total += losses[i]
    return patience * (total / known)


@inner
def is_due(columns: Columns, slot: int, latest: int, due: Due) -> bool:
    """Tell whether a row is to be completed, given the number of the latest arrival."""
    since = latest - columns.serial[slot]
    return bool(since >= due.arrivals or (since >= due.enough and columns.arrived[slot] + due.seconds <= due.now))


@inner
def welcome(
    columns: Columns, waiting: Ints, length: int, latest: int, hardness: Floats, opportunity: float, bonus: Floats
) -> None:
    """Compute the bonus of each waiting row behind the first as its candidate: see `Cail`."""
    serial = columns.serial
    span = max(latest - serial[waiting[0]], 1)
    for i in range(1, length):
        age = (latest - serial[waiting[i]]) / span
        bonus[i - 1] = opportunity * hardness[waiting[i]] * (YOUNG + (OLD - YOUNG) * age)


@inner
def drop(waiting: Ints, keys: Ints, length: int, gone: Ints, count: int, leaving: Flags) -> int:
    """Remove the first `count` slots of `gone` from the waiting ones, keeping their order; return the new length."""
    for i in range(count):
        leaving[gone[i]] = True
    kept = 0
    for i in range(length):
        slot = waiting[i]
        waiting[kept], keys[kept] = slot, keys[i]
        kept += not leaving[slot]
    for i in range(count):
        leaving[gone[i]] = False
    return kept


@compiled
def rounds_compiled(
    prices: Prices,
    columns: Columns,
    queue: Ints,
    first: int,
    latest: int,
    due: Due,
    memory: Memory,
    hardness: Floats,
    need: Counted,
    rule: JoinRule,
    one: bool,
    log2: Floats,
) -> tuple[int, Ints, Ints, int]:
    """Implement `Kernels.arrive_batch` with numba; with `one` it ends at the first cluster that is ready."""
    facts, values, weight, least = prices
    sample, seen, losses, released = memory
    qi, serial = columns.qi, columns.serial
    order = np.argsort(-weight * least, kind="mergesort")
    most = len(queue)
    waiting, length = queue.copy(), first
    keys, leaving = np.empty(most, dtype=np.int64), np.zeros(len(qi), dtype=np.bool_)
    near, codes = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    costs, total = np.empty(max(most, sample.shape[1])), np.empty(max(most, sample.shape[1]))
    bonus = np.empty(most)
    steps = np.empty(STEPS + 1, dtype=np.int64)
    chosen, sizes = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    filled = groups = 0
    room = scratch(qi.shape[1], len(need.values), most)
    limit, limit_after, same = -1.0, -1, 0
    units, before, sizes_of = np.zeros_like(order), np.zeros_like(order), np.ones_like(order)
    keys[:first] = 0
    n = first
    while True:
        if length and is_due(columns, waiting[0], latest, due):
            welcome(columns, waiting, length, latest, hardness, rule.opportunity, bonus)
            count, loss = grow_here(
                prices, columns, waiting[:1].copy(), waiting[1:length], length - 1, bonus, need, np.inf, log2, room
            )
            if not count:
                break
            sizes[groups] = -count
        elif n == most:
            break
        else:
            if limit_after != released:
                limit_after, limit = released, limit_of(rule.threshold, rule.patience, losses, released)
                before[:] = units
                same = alike(facts, values, weight, least, order, limit, units, sizes_of)
                if (units != before).any():
                    rekey(units, sizes_of, qi, waiting, length, keys)
            slot = queue[n]
            n += 1
            latest = serial[slot]
            known = min(seen, sample.shape[1])
            hardness[slot] = hardness_of(facts, values, weight, order, qi, slot, sample, known, costs, total, steps)
            for q in range(len(weight)):
                sample[q, seen % sample.shape[1]] = qi[slot, q]
            seen += 1
            key = key_of(units, sizes_of, qi, slot)
            count, loss = 0, 0.0
            if limit >= 0.0:
                found = near_rows(
                    facts,
                    values,
                    weight,
                    order,
                    same,
                    qi,
                    slot,
                    key,
                    waiting,
                    keys,
                    length,
                    limit,
                    near,
                    codes,
                    costs,
                    total,
                )
                if found >= need.k - 1:
                    bonus[:found] = 0.0
                    count, loss = grow_here(
                        prices, columns, queue[n - 1 : n], near, found, bonus, need, limit, log2, room
                    )
            if not count:
                waiting[length], keys[length] = slot, key
                length += 1
                continue
            sizes[groups] = count
        chosen[filled : filled + count] = room.members[:count]
        filled += count
        groups += 1
        if one:
            break
        losses[released % len(losses)] = loss
        released += 1
        length = drop(waiting, keys, length, room.members, count, leaving)
    return n - first, chosen[:filled], sizes[:groups], released
