"""Classes of rows while they are improved: boxes, sizes, losses and members, kept consistent by compiled loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.batch.shared.dense import Dense, box_price, stretch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import inner, kernel

LARGE = 1 << 40
EMPTY = -1


class Classes(NamedTuple):
    """The classes of all rows: boxes, sizes, losses and members.

    `group` is the class of each row; its members are a list from `head`, linked by `after` and `before`.
    `free` lists the numbers of classes not in use; `used` is (highest number ever used + 1, how many are free).
    """

    group: Ints
    low: Ints
    high: Ints
    size: Ints
    loss: Floats
    head: Ints
    after: Ints
    before: Ints
    free: Ints
    used: Ints


def empty_classes(group: Ints, count: int, width: int) -> Classes:
    """Allocate `count` classes and a quarter more; `settle` fills them."""
    room, n = count + max(64, count // 4), len(group)
    return Classes(
        group=group,
        low=np.full((room, width), LARGE, dtype=np.int64),
        high=np.full((room, width), EMPTY, dtype=np.int64),
        size=np.zeros(room, dtype=np.int64),
        loss=np.zeros(room),
        head=np.full(room, EMPTY, dtype=np.int64),
        after=np.full(n, EMPTY, dtype=np.int64),
        before=np.full(n, EMPTY, dtype=np.int64),
        free=np.empty(room, dtype=np.int64),
        used=np.zeros(2, dtype=np.int64),
    )


@inner
def widen(dense: Dense, low: Ints, high: Ints, row: int) -> bool:
    """Widen a box to hold a row and tell whether it grew."""
    grew = False
    for q in range(len(low)):
        code = dense.code[row, q]
        if code < low[q]:
            low[q] = code
            grew = True
        if code > high[q]:
            high[q] = code
            grew = True
    return grew


@inner
def clear(low: Ints, high: Ints) -> None:
    """Reset a box so that it holds nothing."""
    for q in range(len(low)):
        low[q], high[q] = LARGE, EMPTY


@inner
def link(dense: Dense, classes: Classes, row: int, c: int) -> bool:
    """Put a row into class c without pricing it again, and tell whether its box grew."""
    head = classes.head[c]
    classes.group[row], classes.after[row], classes.before[row] = c, head, EMPTY
    if head >= 0:
        classes.before[head] = row
    classes.head[c] = row
    classes.size[c] += 1
    return widen(dense, classes.low[c], classes.high[c], row)


@inner
def put(dense: Dense, classes: Classes, row: int, c: int) -> None:
    """Put a row into class c and update its price."""
    if link(dense, classes, row, c):
        classes.loss[c] = box_price(dense, classes.low[c], classes.high[c])


@inner
def unlink(classes: Classes, row: int) -> None:
    """Take a row out of its class; the caller tightens the class when all have left."""
    c, before, after = classes.group[row], classes.before[row], classes.after[row]
    if before >= 0:
        classes.after[before] = after
    else:
        classes.head[c] = after
    if after >= 0:
        classes.before[after] = before
    classes.size[c] -= 1


@inner
def drop(classes: Classes, c: int) -> None:
    """Remove class c, which has no members left."""
    classes.size[c], classes.head[c], classes.loss[c] = 0, EMPTY, 0.0
    clear(classes.low[c], classes.high[c])
    classes.free[classes.used[1]] = c
    classes.used[1] += 1


@inner
def tighten(dense: Dense, classes: Classes, c: int) -> None:
    """Fit the box of class c to its members."""
    clear(classes.low[c], classes.high[c])
    row = classes.head[c]
    while row >= 0:
        widen(dense, classes.low[c], classes.high[c], row)
        row = classes.after[row]
    classes.loss[c] = box_price(dense, classes.low[c], classes.high[c])


@kernel
def settle(dense: Dense, classes: Classes, count: int) -> None:
    """Build the classes that `group` names."""
    for row in range(len(classes.group)):
        if classes.group[row] >= 0:
            link(dense, classes, row, classes.group[row])
    for c in range(count):
        classes.loss[c] = box_price(dense, classes.low[c], classes.high[c])
    for c in range(len(classes.size) - 1, count - 1, -1):
        classes.free[classes.used[1]] = c
        classes.used[1] += 1
    classes.used[0] = count


@kernel
def added(dense: Dense, classes: Classes, row: int, cost: Floats) -> None:
    """Compute what the row would add to the loss of each class."""
    for c in range(len(cost)):
        size, total = classes.size[c], 0.0
        for q in range(dense.code.shape[1]):
            code = dense.code[row, q]
            total += stretch(dense, q, min(code, classes.low[c, q]), max(code, classes.high[c, q]))
        cost[c] = (size + 1) * total - size * classes.loss[c]


@kernel
def join_cheapest(dense: Dense, classes: Classes, row: int, count: int) -> None:
    """Put a row that has no class into the first of so many classes where it adds least."""
    found, best = 0, np.inf
    for c in range(count):
        size, total = classes.size[c], 0.0
        for q in range(dense.code.shape[1]):
            code = dense.code[row, q]
            total += stretch(dense, q, min(code, classes.low[c, q]), max(code, classes.high[c, q]))
        cost = (size + 1) * total - size * classes.loss[c]
        if cost < best:
            found, best = c, cost
    put(dense, classes, row, found)


@kernel
def join(dense: Dense, classes: Classes, row: int, c: int) -> None:
    """Put a row that has no class into class c."""
    put(dense, classes, row, c)
