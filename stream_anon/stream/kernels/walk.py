"""Compiled walk over a lattice of generalizations: rows that share all cells of a vector become one block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import COMPILED, Prices, compiled, inner, price

Counts = npt.NDArray[np.int32]
BUCKETS = 4096
SCATTER = 0x9E3779B97F4A7C15 - (1 << 64)


@inner
def _sums_loop(keys: Ints, vector: Ints, count: int, total: Ints) -> None:
    first = keys[vector[0]]
    for i in range(count):
        total[i] = first[i]
    for q in range(1, len(vector)):
        row = keys[vector[q]]
        for i in range(count):
            total[i] += row[i]


def _sums_numpy(keys: Ints, vector: Ints, count: int, total: Ints) -> None:
    total[:count] = keys[vector, :count].sum(axis=0)


@inner
def _crowded_loop(total: Ints, gone: Ints, count: int, wanted: int, table: Counts, found: Ints) -> int:
    mask = 255
    while mask < count:
        mask = 2 * mask + 1
    mask = min(mask, len(table) - 1)
    for bucket in range(mask + 1):
        table[bucket] = 0
    crowded = False
    for i in range(count):
        bucket = ((total[i] * SCATTER) >> 40) & mask
        table[bucket] += gone[i] < 0
        crowded |= table[bucket] == wanted
    rows = 0
    if crowded:
        for i in range(count):
            if gone[i] < 0 and table[((total[i] * SCATTER) >> 40) & mask] >= wanted:
                found[rows] = i
                rows += 1
    return rows


def _crowded_numpy(total: Ints, gone: Ints, count: int, wanted: int, table: Counts, found: Ints) -> int:
    here = np.flatnonzero(gone[:count] < 0)
    bucket = ((total[here] * np.int64(SCATTER)) >> 40) & (BUCKETS - 1)
    rows = here[np.bincount(bucket, minlength=BUCKETS)[bucket] >= wanted]
    found[: len(rows)] = rows
    return len(rows)


sums = _sums_loop if COMPILED else _sums_numpy
"""Compute the key of every row under a vector of levels: the sum of its keys in all columns."""

crowded = _crowded_loop if COMPILED else _crowded_numpy
"""Find the rows whose key falls where at least `wanted` rows do; exact equality is for the caller to see."""


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


@compiled
def walk(
    prices: Prices, qi: Ints, keys: Ints, vectors: Ints, costs: Floats, wanted: int, person: Ints, block: Ints
) -> int:
    """Take out, vector after vector, every class of remaining rows with `wanted` people; return how many there are.

    A class whose box costs more than its vector does on average waits until vectors of its own price have their turn.
    `keys` are used up. `block` says for every row which class took it, -1 for none.
    """
    n, last = keys.shape[1], len(vectors)
    rows, gone = np.arange(n), np.full(n, -1, dtype=np.int64)
    total, found, same = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    table, seen = np.zeros(BUCKETS, dtype=np.int32), np.zeros(len(person) + 2, dtype=np.int64)
    later, after = np.full(last + 1, -1, dtype=np.int64), np.full(last, -1, dtype=np.int64)  # vectors to walk again
    count, left, blocks, v = n, n, 0, 0
    while v < last and left >= wanted:
        vector, limit = v, costs[v] if v < last - 1 else np.inf
        if later[v] >= 0:
            vector = later[v]
            later[v] = after[vector]
        else:
            v += 1
        sums(keys, vectors[vector], count, total)
        near = crowded(total, gone, count, wanted, table, found)
        before, dearer = left, np.inf
        for a in range(near):
            if found[a] < 0:
                continue
            key, alike = total[found[a]], 0
            for b in range(a, near):
                if found[b] >= 0 and total[found[b]] == key:
                    same[alike] = found[b]
                    found[b] = -1
                    alike += 1
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
            place = min(int(np.searchsorted(costs, dearer)), last - 1)  # further on, for it costs more than here
            after[vector], later[place] = later[place], vector
        if before == left:
            continue
        for i in range(count):
            gone[i] = block[rows[i]]
        if 8 * left < 7 * count:
            kept = 0
            for i in range(count):
                if gone[i] < 0:
                    rows[kept] = rows[i]
                    for level in range(keys.shape[0]):
                        keys[level, kept] = keys[level, i]
                    kept += 1
            count = kept
            gone[:count] = -1
    return blocks
