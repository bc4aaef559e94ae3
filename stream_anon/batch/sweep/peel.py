"""Improvement by leaving: move rows at one end of a class, or all, to where they cost less, compiled."""

from __future__ import annotations

from stream_anon.batch.shared.classes import clear, drop, put, tighten, unlink, widen
from stream_anon.batch.shared.dense import box_price
from stream_anon.batch.sweep.index import HUGE, nearest
from stream_anon.batch.sweep.search import Room, Search
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.counting import NONE, enough
from stream_anon.core.kernels import inner, kernel

LITTLE = 1e-9
"""A smaller gain is rounding."""


@inner
def rehouse(search: Search, c: int, leaving: Ints, count: int, gain: float) -> bool:
    """Move the rows out of class c if their best places, priced one by one, cost less than `gain`."""
    dense, classes, index = search.dense, search.classes, search.places
    cost = 0.0
    for a in range(count):
        place, price = nearest(dense, classes, index, leaving[a], gain - cost - LITTLE, c)
        if place < 0:
            return False
        cost += price
    for a in range(count):
        place, price = nearest(dense, classes, index, leaving[a], HUGE, c)
        if place < 0:
            return False  # nothing but c is left to search: the rows stay
        unlink(classes, leaving[a])
        put(dense, classes, leaving[a], place)
    if classes.size[c]:
        tighten(dense, classes, c)
    else:
        drop(classes, c)
    return True


@kernel
def peel(search: Search, room: Room) -> None:
    """Move the rows at each end of each column out of every class that can do without; finally try all of its rows."""
    dense, classes, need = search.dense, search.classes, search.need
    leaving, rest, low, high = room.rows, room.spare, room.low, room.high
    width = dense.code.shape[1]
    for c in range(classes.used[0]):
        for end in range(2 * width + 1):
            if classes.size[c] == 0 or classes.loss[c] <= 0.0:
                break
            q, everyone = min(end >> 1, width - 1), end == 2 * width
            if not everyone and (classes.low[c, q] == classes.high[c, q] or classes.size[c] <= need.rows):
                continue
            extreme = classes.low[c, q] if end & 1 else classes.high[c, q]
            gone, stay = 0, 0
            row = classes.head[c]
            clear(low, high)
            while row >= 0:
                if everyone or dense.code[row, q] == extreme:
                    leaving[gone] = row
                    gone += 1
                else:
                    rest[stay] = row
                    stay += 1
                    widen(dense, low, high, row)
                row = classes.after[row]
            if stay and not enough(need, rest, NONE, stay):
                continue
            gain = classes.size[c] * classes.loss[c]
            if stay:
                gain -= stay * box_price(dense, low, high)
            rehouse(search, c, leaving, gone, gain)
