"""Improvement by exchange: rows leave a class that cannot spare them, and spare rows of others replace them."""

from __future__ import annotations

from stream_anon.batch.shared.classes import Classes, clear, put, tighten, unlink, widen
from stream_anon.batch.shared.dense import box_price, stretch
from stream_anon.batch.sweep.index import HUGE, REACH, bucket_of, nearest
from stream_anon.batch.sweep.peel import LITTLE
from stream_anon.batch.sweep.search import Room, Search
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.counting import NONE, enough
from stream_anon.core.judging.need import CompiledRequirements
from stream_anon.core.kernels import inner, kernel


@inner
def _spare(search: Search, room: Room, c: int, size: int, best: float) -> int:
    """Find the row of another, larger class that costs least in the box and saves its class at least its loss.

    The box is that of the room, its first row the point to look around. Rows already promised have a negative class.
    """
    dense, classes, index, need = search.dense, search.classes, search.places, search.need
    low, high, given, point = room.low, room.high, room.given, room.rows[0]
    pick, seen, width = -1, 0, dense.code.shape[1]
    for grain in range(len(index.grain)):
        if seen > REACH:
            break
        b = bucket_of(index, grain, dense.code[point])
        seen += index.start[b + 1] - index.start[b]
        for place in range(index.start[b], min(index.start[b + 1], index.start[b] + 4 * REACH)):
            e = index.item[place]
            if classes.size[e] - given[e] <= need.rows or e == c:
                continue
            limit, total = (best + classes.loss[e]) / size, 0.0
            for q in range(width):
                total += stretch(dense, q, min(low[q], classes.high[e, q]), max(high[q], classes.low[e, q]))
                if total >= limit:
                    break
            row, tries = classes.head[e] if total < limit else -1, 0
            while row >= 0 and tries < 4 * need.rows:
                tries += 1
                if classes.group[row] >= 0:
                    total = 0.0
                    for q in range(width):
                        code = dense.code[row, q]
                        total += stretch(dense, q, min(low[q], code), max(high[q], code))
                    if size * total - classes.loss[e] < best:
                        best, pick = size * total - classes.loss[e], row
                    if classes.loss[e] == 0.0:
                        break  # its rows are all alike
                row = classes.after[row]
    return pick


@inner
def _givers_hold(classes: Classes, need: CompiledRequirements, rows: Ints, first: int, stop: int, given: Ints) -> bool:
    """Tell whether what each giver keeps still satisfies the policy; room for its rows is after `stop`."""
    for a in range(first, stop):
        e = -1 - classes.group[rows[a]]
        if given[e] == 0:
            continue  # seen to already
        given[e] = 0
        end, row = stop, classes.head[e]
        while row >= 0:
            if classes.group[row] >= 0:
                rows[end] = row
                end += 1
            row = classes.after[row]
        if not enough(need, rows, stop, end):
            return False
    return True


@kernel
def trade(search: Search, room: Room) -> None:
    """Exchange the rows at each end of each column of every class for as many others as it needs, where that pays.

    1. Divide the class; see what its places elsewhere cost those who leave.
    2. Promise the cheapest spare rows to the class, one by one.
    3. See that the class and all givers satisfy the policy.
    4. Move.
    """
    dense, classes, index, need = search.dense, search.classes, search.places, search.need
    rest, gone, given, low, high = room.rows, room.spare, room.given, room.low, room.high
    for c in range(classes.used[0]):
        for end in range(2 * dense.code.shape[1]):
            q = end >> 1
            if classes.loss[c] <= 0.0 or classes.low[c, q] >= classes.high[c, q]:
                continue
            extreme = classes.low[c, q] if end & 1 else classes.high[c, q]
            leave, stay, before = 0, 0, classes.size[c]
            row = classes.head[c]
            clear(low, high)
            while row >= 0:
                if dense.code[row, q] == extreme:
                    gone[leave] = row
                    leave += 1
                else:
                    rest[stay] = row
                    stay += 1
                    widen(dense, low, high, row)
                row = classes.after[row]
            fill = min(before, max(need.rows, stay)) - stay
            if 2 * leave > before or fill <= 0:
                continue
            size = stay + fill
            kernel = size * box_price(dense, low, high)
            gain = before * classes.loss[c] - kernel - LITTLE
            housed = 0
            while housed < leave:
                place, price = nearest(dense, classes, index, gone[housed], gain, c)
                if place < 0:
                    break
                gain -= price
                housed += 1
            if housed < leave:
                continue
            gain += kernel  # what the new class may cost
            total = stay
            while total < size:
                pick = _spare(search, room, c, size, gain)
                if pick < 0:
                    break
                e = classes.group[pick]
                given[e] += 1
                gain += classes.loss[e]
                classes.group[pick] = -1 - e
                rest[total] = pick
                total += 1
                widen(dense, low, high, pick)
            good = (
                total == size
                and enough(need, rest, NONE, total)
                and _givers_hold(classes, need, rest, stay, total, given)
            )
            for a in range(stay, total):
                classes.group[rest[a]] = -1 - classes.group[rest[a]]
                given[classes.group[rest[a]]] = 0
            if not good:
                continue
            for a in range(stay, total):
                e = classes.group[rest[a]]
                unlink(classes, rest[a])
                put(dense, classes, rest[a], c)
                tighten(dense, classes, e)
            for a in range(leave):
                place, price = nearest(dense, classes, index, gone[a], HUGE, c)
                if place >= 0:
                    unlink(classes, gone[a])
                    put(dense, classes, gone[a], place)
            tighten(dense, classes, c)
