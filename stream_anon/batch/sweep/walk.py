"""The walk over the lattice, compiled: at each vector, take the classes of remaining rows that have enough people."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.batch.shared.dense import Dense
from stream_anon.batch.sweep.lattice import Lattice
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.counting import enough
from stream_anon.core.judging.need import CompiledRequirements
from stream_anon.core.kernels import inner, kernel

NOWHERE = -1


class WalkRoom(NamedTuple):
    """How far a walk is, and the room it works in.

    `state` is (rows left, classes so far), `left` the rows left, `group` the class of each row. `table` finds classes
    by their names: keys, stamps, sizes and numbers; `slots` is the place of each row in it, `base` where cells start.
    """

    state: Ints
    left: Ints
    group: Ints
    slots: Ints
    rows: Ints
    starts: Ints
    table: Ints
    base: Ints


def walk_room(n: int, least: int, width: int) -> WalkRoom:
    """Return room for a walk over n rows, whose classes have `least` rows at the least."""
    return WalkRoom(
        state=np.array([n, 0], dtype=np.int64),
        left=np.arange(n, dtype=np.int64),
        group=np.full(n, NOWHERE, dtype=np.int64),
        slots=np.empty(n, dtype=np.int64),
        rows=np.empty(n, dtype=np.int64),
        starts=np.empty(n // least + 2, dtype=np.int64),
        table=np.zeros((4, 1 << max(6, int(2 * n).bit_length())), dtype=np.int64),
        base=np.empty(width, dtype=np.int64),
    )


@inner
def class_name(dense: Dense, lattice: Lattice, base: Ints, row: int) -> int:
    """Return the name of the row's class under the vector whose cells start at `base`."""
    name = 0
    for q in range(len(base)):
        name += lattice.name[base[q] + dense.code[row, q]]
    return name


@inner
def slot_of(name: int, mask: int) -> int:
    """Return where to look first for a name in a table of `mask + 1` places."""
    return (name ^ (name >> 29)) & mask


@inner
def candidates(dense: Dense, lattice: Lattice, room: WalkRoom, least: int, vector: int, count: int) -> int:
    """Sort the first `count` rows that are left into classes; those of `least` rows follow one another in `rows`.

    Returns how many there are; `starts` says where each begins and the last one ends.
    """
    left, slots, rows, starts = room.left, room.slots, room.rows, room.starts
    keys, stamps, sizes, numbers = room.table[0], room.table[1], room.table[2], room.table[3]
    width = 64
    while width < 2 * count:
        width *= 2
    mask, found, stamp = width - 1, 0, vector + 1
    base = room.base
    for q in range(len(base)):
        base[q] = lattice.base[q] + lattice.vectors[vector, q] * lattice.kinds[q]
    for a in range(count):
        name = class_name(dense, lattice, base, left[a])
        slot = slot_of(name, mask)
        while stamps[slot] == stamp and keys[slot] != name:
            slot = (slot + 1) & mask
        if stamps[slot] != stamp:
            stamps[slot], keys[slot], sizes[slot], numbers[slot] = stamp, name, 0, NOWHERE
        sizes[slot] += 1
        slots[a] = slot
        if sizes[slot] == least:
            numbers[slot] = found
            found += 1
    if found == 0:
        return 0
    for c in range(found + 1):
        starts[c] = 0
    for a in range(count):
        if numbers[slots[a]] >= 0:
            starts[numbers[slots[a]] + 1] += 1
    for c in range(found):
        starts[c + 1] += starts[c]
    for a in range(count):
        c = numbers[slots[a]]
        if c >= 0:
            rows[starts[c]] = left[a]
            starts[c] += 1
    for c in range(found, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0
    return found


@kernel
def walk(dense: Dense, lattice: Lattice, need: CompiledRequirements, room: WalkRoom, vector: int, stop: int) -> int:
    """Walk the vectors from `vector` to `stop`, taking out every class that has enough people; return the next one."""
    state, group, rows, starts = room.state, room.group, room.rows, room.starts
    while vector < stop and state[0] >= need.rows:
        count = state[0]
        found = candidates(dense, lattice, room, need.rows, vector, count)
        vector += 1
        good = 0
        for c in range(found):
            if enough(need, rows, starts[c], starts[c + 1]):
                for r in range(starts[c], starts[c + 1]):
                    group[rows[r]] = state[1]
                state[1] += 1
                good += 1
        if good:
            state[0] = compact(room.left, count, group)
    return vector


@inner
def compact(left: Ints, count: int, group: Ints) -> int:
    """Drop the rows that have a class from `left` and return how many remain."""
    kept = 0
    for a in range(count):
        if group[left[a]] < 0:
            left[kept] = left[a]
            kept += 1
    return kept
