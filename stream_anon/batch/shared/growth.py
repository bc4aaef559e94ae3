"""Grow a box by the row that costs it least, compiled: every value is priced once, then rows only look up."""

from __future__ import annotations

import numpy as np

from stream_anon.batch.shared.classes import widen
from stream_anon.batch.shared.dense import Dense, stretch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import compiled, inner


@inner
def fill_costs(dense: Dense, low: Ints, high: Ints, cost: Floats) -> None:
    """Compute what the box would cost in each column if it had to hold each of the column's values."""
    for q in range(len(low)):
        first = dense.first[q]
        for code in range(dense.kinds[q]):
            cost[first + code] = stretch(dense, q, min(low[q], code), max(high[q], code))


@inner
def cheapest(dense: Dense, cost: Floats, left: Ints, start: int, stop: int, person: Ints, inside: Ints) -> int:
    """Return the place in `left[start:stop]` of the cheapest row of somebody not yet `inside`; -1 if none."""
    best, found = np.inf, -1
    for a in range(start, stop):
        row, total = left[a], 0.0
        for q in range(dense.code.shape[1]):
            total += cost[dense.first[q] + dense.code[row, q]]
            if total >= best:
                break
        if total < best and (len(person) == 0 or inside[person[row]] == 0):
            best, found = total, a
    return found


@compiled
def farthest(dense: Dense, left: Ints, count: int, row: int) -> int:
    """Return the place of the row that would cost most together with the given one."""
    worst, found = -1.0, 0
    for a in range(count):
        total = 0.0
        for q in range(dense.code.shape[1]):
            one, other = dense.code[row, q], dense.code[left[a], q]
            total += stretch(dense, q, min(one, other), max(one, other))
        if total > worst:
            worst, found = total, a
    return found


@compiled
def grow(dense: Dense, left: Ints, count: int, size: int, low: Ints, high: Ints, person: Ints, inside: Ints) -> int:
    """Move rows, the cheapest first, from `left[:count]` behind its end until the box has `size` people.

    The box holds one row's person at the start; `inside` marks people. Returns how many rows are left; those taken
    stand at `left[that:count]`.
    """
    cost = np.empty(len(dense.point))
    while size > 0:
        fill_costs(dense, low, high, cost)
        place = cheapest(dense, cost, left, 0, count, person, inside)
        if place < 0:
            break
        row = left[place]
        widen(dense, low, high, row)
        if len(person):
            inside[person[row]] = 1
        count -= 1
        left[place], left[count] = left[count], row
        size -= 1
    return count


@compiled
def pick(dense: Dense, left: Ints, wanted: Ints, low: Ints, high: Ints, person: Ints, inside: Ints) -> int:
    """Return the place in `left` of the cheapest of the rows whose places are `wanted`; -1 if there is none."""
    cost = np.empty(len(dense.point))
    fill_costs(dense, low, high, cost)
    rows = left[wanted]
    place = cheapest(dense, cost, rows, 0, len(rows), person, inside)
    return -1 if place < 0 else int(wanted[place])
