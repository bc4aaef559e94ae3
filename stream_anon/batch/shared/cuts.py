"""Median cuts of ranges of rows, compiled: choose the column and the value, and sort the rows to their sides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.batch.shared.dense import Dense, stretch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.judging.counting import enough
from stream_anon.core.judging.need import CompiledRequirements
from stream_anon.core.kernels import LINEAR, inner, kernel

KIND = 0
NO_CUT = -1


@inner
def _fit(dense: Dense, rows: Ints, start: int, stop: int, low: Ints, high: Ints) -> None:
    """Fit a box to these rows, all columns of a row at once: a row is fetched far more slowly than it is compared."""
    for q in range(len(low)):
        low[q] = high[q] = dense.code[rows[start], q]
    for r in range(start + 1, stop):
        row = rows[r]
        for q in range(len(low)):
            code = dense.code[row, q]
            low[q], high[q] = min(low[q], code), max(high[q], code)


@inner
def _rank(dense: Dense, low: Ints, high: Ints, order: Ints, extent: Floats) -> None:
    """Sort the columns in `order` by what the box costs in them, most expensive first, ties as they are.

    A column in which all rows agree costs nothing and comes last.
    """
    for q in range(len(low)):
        extent[q] = stretch(dense, q, low[q], high[q])
    for place in range(1, len(order)):
        q, back = order[place], place
        while back > 0 and extent[order[back - 1]] < extent[q]:
            order[back] = order[back - 1]
            back -= 1
        order[back] = q


@inner
def _nested(dense: Dense, q: int, low: int, high: int) -> bool:
    """Tell whether column q is a tree of cells, in which every cell's price is known, rather than a line of numbers."""
    return bool(dense.facts[q, KIND] != LINEAR and stretch(dense, q, low, high) > 0)


@inner
def _cut(dense: Dense, division: Division, start: int, stop: int, q: int, relaxed: bool, by_tree: bool) -> int:
    """Move the rows to their sides of the cut of column q; return where the right side starts, `NO_CUT` if none.

    The box of the division is that of these rows. The left side has the values up to the lower median; if that is all
    of them, those below it. By tree, the border is one between children of the common ancestor, the one nearest to the
    median.
    """
    low, high, rows, spare, tally = division.low[q], division.high[q], division.rows, division.spare, division.tally
    if low == high:
        return NO_CUT
    size = stop - start
    for code in range(high - low + 2):
        tally[code] = 0
    for r in range(start, stop):
        tally[dense.code[rows[r], q] - low + 1] += 1
    for code in range(1, high - low + 2):
        tally[code] += tally[code - 1]
    if relaxed:
        half = size // 2
        for r in range(start, stop):
            spare[r] = rows[r]
        for r in range(start, stop):  # a stable counting sort
            code = dense.code[spare[r], q] - low
            rows[start + tally[code]] = spare[r]
            tally[code] += 1
        return start + half if size >= 2 else NO_CUT
    border = 1  # the left side has the codes below low + border
    while 2 * tally[border] < size:
        border += 1
    if tally[border] == size:
        while tally[border] == size:
            border -= 1
    if by_tree and _nested(dense, q, low, high):
        border = _nearest_border(dense, q, low, high, tally, size, border)
    left, right = start, start
    for r in range(start, stop):
        if dense.code[rows[r], q] - low < border:
            rows[left] = rows[r]
            left += 1
        else:
            spare[right] = rows[r]
            right += 1
    for r in range(start, right):
        rows[left + r - start] = spare[r]
    return left


@inner
def _nearest_border(dense: Dense, q: int, low: int, high: int, tally: Ints, size: int, otherwise: int) -> int:
    """Return the border between children of the common ancestor that divides the rows most evenly."""
    whole, best, least = stretch(dense, q, low, high), otherwise, size + 1
    before = low
    for code in range(low + 1, high + 1):
        if tally[code - low + 1] == tally[code - low]:
            continue  # nobody has it
        uneven = abs(2 * tally[code - low] - size)
        if uneven < least and stretch(dense, q, before, code) >= whole:
            best, least = code - low, uneven
        before = code
    return best


class Way(NamedTuple):
    """The way of cutting: the columns in the order to try them, or the widest first; see `cut` for the others."""

    order: Ints
    widest: bool
    relaxed: bool
    by_tree: bool


class Division(NamedTuple):
    """A table that is being divided: its rows, in an order that groups keep to, and what is still to be done.

    `stack[:todo]` holds (start, stop) pairs; `done[0]` counts the finished groups, whose starts follow. The rest is
    filled and forgotten again and again: `spare` and `kept` hold rows, `low` and `high` a box, `extent` what it costs,
    `wanted` the columns in the order to try them, `tally` counts codes.
    """

    rows: Ints
    todo: Ints
    stack: Ints
    done: Ints
    spare: Ints
    kept: Ints
    low: Ints
    high: Ints
    extent: Floats
    wanted: Ints
    tally: Ints


def division_of(rows: Ints, dense: Dense) -> Division:
    """Return a division that has not begun: all rows are on the stack."""
    n, width = len(rows), dense.width
    stack = np.zeros((n + 2, 2), dtype=np.int64)
    stack[0] = 0, n
    ints = [np.zeros(size, dtype=np.int64) for size in (n + 2, n, n, width, width, width, int(dense.kinds.max()) + 1)]
    done, spare, kept, low, high, wanted, tally = ints
    todo = np.ones(1, dtype=np.int64)
    return Division(rows, todo, stack, done, spare, kept, low, high, np.zeros(width), wanted, tally)


@kernel
def divide(dense: Dense, need: CompiledRequirements, division: Division, way: Way, limit: int) -> int:
    """Cut the ranges on the stack until none can be cut, or `limit` were tried; return the number of rows finished."""
    rows, todo, stack, done = division.rows, division.todo, division.stack, division.done
    order, widest, relaxed, by_tree = way.order, way.widest, way.relaxed, way.by_tree
    kept, wanted = division.kept, division.wanted
    for place in range(len(order)):
        wanted[place] = order[place]
    left, finished = todo[0], 0
    while left > 0 and limit > 0:
        limit -= 1
        left -= 1
        start, stop = stack[left, 0], stack[left, 1]
        border = NO_CUT
        if stop - start >= 2 * need.rows:
            _fit(dense, rows, start, stop, division.low, division.high)
            if widest:
                for place in range(len(order)):
                    wanted[place] = order[place]
                _rank(dense, division.low, division.high, wanted, division.extent)
            for r in range(start, stop):
                kept[r] = rows[r]
            for place in range(len(wanted)):
                border = _cut(dense, division, start, stop, wanted[place], relaxed, by_tree)
                if border != NO_CUT:
                    if enough(need, rows, start, border) and enough(need, rows, border, stop):
                        break
                    border = NO_CUT
                    for r in range(start, stop):
                        rows[r] = kept[r]
        if border == NO_CUT:
            done[0] += 1
            done[done[0]] = start
            finished += stop - start
        else:
            stack[left, 0], stack[left, 1] = border, stop
            stack[left + 1, 0], stack[left + 1, 1] = start, border
            left += 2
    todo[0] = left
    return finished
