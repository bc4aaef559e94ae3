"""Improvement by division: pool two near classes and cut them again wherever that loses least, compiled."""

from __future__ import annotations

from stream_anon.batch.shared.classes import Classes, clear, drop, put, widen
from stream_anon.batch.shared.dense import Dense, box_price, stretch
from stream_anon.batch.sweep.index import HUGE, REACH, bucket_of
from stream_anon.batch.sweep.peel import LITTLE
from stream_anon.batch.sweep.search import POOL, CutRoom, Room, Search
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.judging.counting import NONE, satisfied
from stream_anon.core.judging.need import CompiledRequirements
from stream_anon.core.kernels import inner, kernel

SHORT = 16
"""Rows that are put into order one by one."""


@inner
def _sort(dense: Dense, room: CutRoom, start: int, count: int, q: int) -> None:
    """Put so many of the room's rows from `start` on into the order of column q, equal ones as they came."""
    into, spare, code = room.sorted_rows, room.merged, dense.code
    for r in range(count):
        into[r] = room.rows[start + r]
    for first in range(0, count, SHORT):  # stretches so short that it is fastest to insert
        for r in range(first + 1, min(first + SHORT, count)):
            row, back = into[r], r
            while back > first and code[into[back - 1], q] > code[row, q]:
                into[back] = into[back - 1]
                back -= 1
            into[back] = row
    width = SHORT
    while width < count:
        for first in range(0, count - width, 2 * width):
            middle, end = first + width, min(first + 2 * width, count)
            for r in range(first, middle):
                spare[r] = into[r]
            one, other, place = first, middle, first
            while one < middle:
                if other < end and code[into[other], q] < code[spare[one], q]:
                    into[place] = into[other]
                    other += 1
                else:
                    into[place] = spare[one]
                    one += 1
                place += 1
        width *= 2


@inner
def best_cut(dense: Dense, need: CompiledRequirements, room: CutRoom, start: int, stop: int) -> tuple[float, int, int]:
    """Find the best cut of the room's `rows[start:stop]`: loss of both sides, column, first code on the right."""
    sorted_rows, left_loss, low, high = room.sorted_rows, room.left_loss, room.low, room.high
    count, best, column, code = stop - start, HUGE, -1, 0
    for q in range(dense.code.shape[1]):
        _sort(dense, room, start, count, q)
        if dense.code[sorted_rows[0], q] == dense.code[sorted_rows[count - 1], q]:
            continue
        loss = 0.0
        clear(low, high)
        for r in range(count):
            if widen(dense, low, high, sorted_rows[r]):
                loss = box_price(dense, low, high)
            left_loss[r] = loss
        clear(low, high)
        for r in range(count - 1, need.rows - 1, -1):
            if widen(dense, low, high, sorted_rows[r]):
                loss = box_price(dense, low, high)
            border = dense.code[sorted_rows[r - 1], q] != dense.code[sorted_rows[r], q]
            if count - r < need.rows or not border:
                continue
            both = left_loss[r - 1] * r + loss * (count - r)
            if both < best and satisfied(need, sorted_rows, NONE, r) and satisfied(need, sorted_rows, r, count):
                best, column, code = both, q, dense.code[sorted_rows[r], q]
    return best, column, code


@inner
def near_classes(search: Search, c: int, distance: Floats, found: Ints) -> None:
    """Find the classes whose union with class c costs least, nearest first; -1 where there are fewer."""
    dense, classes, index = search.dense, search.classes, search.places
    last, seen = len(distance) - 1, 0
    for place in range(len(distance)):
        distance[place], found[place] = HUGE, -1
    for grain in range(len(index.grain)):
        if seen > REACH:
            break
        b = bucket_of(index, grain, classes.low[c])
        seen += index.start[b + 1] - index.start[b]
        for place in range(index.start[b], min(index.start[b + 1], index.start[b] + 4 * REACH)):
            e = index.item[place]
            if classes.loss[e] <= 0.0 or e == c:
                continue
            total = 0.0
            for q in range(dense.code.shape[1]):
                low, high = min(classes.low[e, q], classes.low[c, q]), max(classes.high[e, q], classes.high[c, q])
                total += stretch(dense, q, low, high)
                if total >= distance[last]:
                    break
            if total < distance[last]:
                back = last
                while back > 0 and distance[back - 1] > total:
                    distance[back], found[back] = distance[back - 1], found[back - 1]
                    back -= 1
                distance[back], found[back] = total, e


@inner
def _pool(classes: Classes, c: int, rows: Ints, count: int) -> int:
    row = classes.head[c]
    while row >= 0:
        rows[count] = row
        count += 1
        row = classes.after[row]
    return count


@kernel
def recut(search: Search, room: Room) -> None:
    """Pool every class with each near class in turn and keep the first division that loses less, if there is one."""
    dense, classes, need = search.dense, search.classes, search.need
    rows, part, found, low, high, todo = room.rows, room.spare, room.found, room.low, room.high, room.todo
    cut_room = CutRoom(rows, room.sorted_rows, room.merged, room.left_loss, low, high)
    for c in range(classes.used[0]):
        if classes.size[c] == 0 or classes.loss[c] <= 0.0:
            continue
        near_classes(search, c, room.distance, found)
        for near in range(len(found)):
            e = found[near]
            if e < 0:
                break
            if classes.size[c] + classes.size[e] > POOL:
                continue
            count = _pool(classes, e, rows, _pool(classes, c, rows, NONE))
            before = classes.size[c] * classes.loss[c] + classes.size[e] * classes.loss[e] - LITTLE
            todo[0, 0], todo[0, 1], left, parts, after = 0, count, 1, 0, 0.0
            while left and after < before:
                left -= 1
                start, stop = todo[left, 0], todo[left, 1]
                clear(low, high)
                for r in range(start, stop):
                    widen(dense, low, high, rows[r])
                whole = box_price(dense, low, high) * (stop - start)
                both, q, code = HUGE, -1, 0
                if stop - start >= 2 * need.rows and whole > 0.0:
                    both, q, code = best_cut(dense, need, cut_room, start, stop)
                if both < whole:
                    border = start
                    for r in range(start, stop):
                        if dense.code[rows[r], q] < code:
                            rows[r], rows[border] = rows[border], rows[r]
                            border += 1
                    todo[left, 0], todo[left, 1] = start, border
                    todo[left + 1, 0], todo[left + 1, 1] = border, stop
                    left += 2
                else:
                    for r in range(start, stop):
                        part[r] = parts
                    parts += 1
                    after += whole
            if left == 0 and after < before and parts - 2 <= classes.used[1]:
                drop(classes, c)
                drop(classes, e)
                first = classes.used[1] - parts
                classes.used[1] = first
                for r in range(count):
                    put(dense, classes, rows[r], classes.free[first + part[r]])
                for p in range(parts):
                    classes.used[0] = max(classes.used[0], classes.free[first + p] + 1)
                break
