"""Compiled walk over a lattice of generalizations: rows that share all cells of a vector become one block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import COMPILED, Prices, inner, kernel, price

Keys = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.uint16]
LEAST_BITS, MOST_BITS = 8, 13
"""Rows are counted in so many buckets, as powers of two: four times as many as rows, so that few fall together by
chance, and few enough for the first cache."""


class Room(NamedTuple):
    """Who each row is about, and room to walk in: `turns` are vectors to walk again, by the place of their turn."""

    person: Ints
    places: Ints
    here: Counts
    total: Keys
    table: Counts
    head: Ints
    turns: Ints
    seen: Ints


@inner
def _sums_loop(keys: Keys, vector: Ints, count: int, total: Keys) -> None:
    first = keys[vector[0]]
    for i in range(count):
        total[i] = first[i]
    for q in range(1, len(vector)):
        row = keys[vector[q]]
        for i in range(count):
            total[i] += row[i]


def _sums_numpy(keys: Keys, vector: Ints, count: int, total: Keys) -> None:
    keys[vector, :count].sum(axis=0, dtype=np.uint32, out=total[:count])


@inner
def _crowded_loop(total: Keys, here: Counts, count: int, wanted: int, table: Counts, found: Ints) -> int:
    bits = LEAST_BITS
    while bits < MOST_BITS and 1 << bits < 4 * count:
        bits += 1
    shift = 32 - bits
    for bucket in range(1 << bits):
        table[bucket] = 0
    for i in range(count):
        table[total[i] >> shift] += here[i]
    most = table[0]
    for bucket in range(1 << bits):  # both of sixteen bits: eight or more are compared at once
        if table[bucket] > most:
            most = table[bucket]
    rows = 0
    if most >= wanted:
        for i in range(count):
            if here[i] and table[total[i] >> shift] >= wanted:
                found[rows] = i
                rows += 1
    return rows


def _crowded_numpy(total: Keys, here: Counts, count: int, wanted: int, table: Counts, found: Ints) -> int:
    left = np.flatnonzero(here[:count])
    bucket = total[left] >> np.uint32(32 - MOST_BITS)
    rows = left[np.bincount(bucket, minlength=1 << MOST_BITS)[bucket] >= wanted]
    found[: len(rows)] = rows
    return len(rows)


sums = _sums_loop if COMPILED else _sums_numpy
"""Compute the key of every row under a vector of levels: the sum of its keys in all columns."""

crowded = _crowded_loop if COMPILED else _crowded_numpy
"""Find the rows whose key falls where at least `wanted` rows do; exact equality is for the caller to see."""


@inner
def link(total: Keys, found: Ints, near: int, head: Ints, following: Ints) -> None:
    """Link the rows found that may share a key, in their order: `following` is the next place in `found`, or -1."""
    for a in range(near):
        head[total[found[a]] >> (32 - MOST_BITS)] = -1
    for back in range(near):
        a = near - 1 - back
        bucket = total[found[a]] >> (32 - MOST_BITS)
        following[a], head[bucket] = head[bucket], a


@inner
def people_of(person: Ints, rows: Ints, count: int, seen: Ints) -> int:
    """Count the different people among the first rows; without numbers of people every row is another's."""
    if len(person) == 0:
        return count
    seen[0] += 1
    people = 0
    for i in range(count):
        who = person[rows[i]] + 1
        people += seen[who] != seen[0]
        seen[who] = seen[0]
    return people


@inner
def box_price(prices: Prices, qi: Ints, rows: Ints, count: int) -> float:
    """Return the price of the box of the first rows."""
    facts, values, weight, _ = prices
    total = 0.0
    for q in range(len(weight)):
        low = high = qi[rows[0], q]
        for i in range(1, count):
            low, high = min(low, qi[rows[i], q]), max(high, qi[rows[i], q])
        total += weight[q] * price(facts, values, q, low, high)
    return total


@inner
def place_of(costs: Floats, cost: float) -> int:
    """Return the place of the first of ascending costs that is not below one."""
    low, high = 0, len(costs)
    while low < high:
        middle = (low + high) // 2
        if costs[middle] < cost:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def rows_alike(total: Keys, found: Ints, a: int, following: Ints, same: Ints) -> int:
    """Collect the rows found that have the key of one of them, and strike them out; return how many they are."""
    key, alike, b = total[found[a]], 0, a
    while b >= 0:
        if found[b] >= 0 and total[found[b]] == key:
            same[alike] = found[b]
            found[b] = -1
            alike += 1
        b = following[b]
    return alike


def walk(
    prices: Prices, qi: Ints, keys: Keys, vectors: Ints, costs: Floats, wanted: int, person: Ints, block: Ints
) -> int:
    """Take out, vector after vector, every class of remaining rows with `wanted` people; return how many there are.

    A class whose box costs more than its vector does on average waits until vectors of its own price have their turn.
    `keys` are used up. `block` says for every row which class took it, -1 for none.
    """
    n = keys.shape[1]
    room = Room(
        person=person,
        places=np.empty((4, n), dtype=np.int64),
        here=np.ones(n, dtype=np.uint16),
        total=np.empty(n, dtype=np.uint32),
        table=np.zeros(1 << MOST_BITS, dtype=np.uint16),
        head=np.empty(1 << MOST_BITS, dtype=np.int64),
        turns=np.full((2, len(vectors) + 1), -1, dtype=np.int64),
        seen=np.zeros(len(person) + 2, dtype=np.int64),
    )
    room.places[0] = np.arange(n)
    return _walk(prices, qi, keys, vectors, costs, wanted, block, room)


@kernel
def _walk(
    prices: Prices, qi: Ints, keys: Keys, vectors: Ints, costs: Floats, wanted: int, block: Ints, room: Room
) -> int:
    """Do what `walk` says, in the room that is given."""
    person, places, here, total, table, head, turns, seen = room
    n, last = keys.shape[1], len(vectors)
    rows, found, same, following, later, after = places[0], places[1], places[2], places[3], turns[0], turns[1]
    count, left, blocks, v = n, n, 0, 0
    while v < last and left >= wanted:
        vector, limit = v, costs[v] if v < last - 1 else np.inf
        if later[v] >= 0:
            vector = later[v]
            later[v] = after[vector]
        else:
            v += 1
        sums(keys, vectors[vector], count, total)
        near = crowded(total, here, count, wanted, table, found)
        link(total, found, near, head, following)
        before, dearer = left, np.inf
        for a in range(near):
            if found[a] < 0:
                continue
            alike = rows_alike(total, found, a, following, same)
            if alike < wanted:
                continue
            for i in range(alike):
                same[i] = rows[same[i]]
            if people_of(person, same, alike, seen) < wanted:
                continue
            cost = box_price(prices, qi, same, alike)
            if cost > limit:
                dearer = min(dearer, cost)
                continue
            for i in range(alike):
                block[same[i]] = blocks
            blocks += 1
            left -= alike
        if dearer < np.inf:
            place = min(place_of(costs, dearer), last - 1)  # further on, for it costs more than here
            after[vector], later[place] = later[place], vector
        if before == left:
            continue
        for i in range(count):
            here[i] = block[rows[i]] < 0
        if 8 * left < 7 * count:
            kept = 0
            for i in range(count):
                if here[i]:
                    rows[kept] = rows[i]
                    for level in range(keys.shape[0]):
                        keys[level, kept] = keys[level, i]
                    kept += 1
            count = kept
            for i in range(count):
                here[i] = 1
    return blocks
