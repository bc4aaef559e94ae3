"""Compiled rounds of arrivals: each new row looks for near rows, and a cluster that is large enough becomes a block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import COMPILED, Prices, inner, kernel
from stream_anon.stream.kernels.boxes import union, widen_column
from stream_anon.stream.kernels.lists import Lists, put, put_all, take
from stream_anon.stream.kernels.near import alike, keep, key_of

FEWEST_SEEN, SEEN_PER_PERSON = 192, 4
"""Rows of a bucket that a newcomer looks at, the newest first: so many, or so many for each person of a block. The work
for one row is bounded; in a large window more would be a look into far memory each, for a loss 2 % lower."""


class Likeness(NamedTuple):
    """How rows within a limit of each other must be alike; see `alike`. They share a key, and so a bucket."""

    limit: float
    units: Ints
    sizes: Ints
    order: Ints
    same: int


class Filed(NamedTuple):
    """The rows that newcomers can find: `rows` many, in buckets, and the key of each."""

    lists: Lists
    keys: Ints
    rows: int


class Room(NamedTuple):
    """What growing is bound to, and room for it: a cluster has `people`, `log2` holds logarithms of sizes.

    `rows` are found rows, codes of a column, and the members of a cluster; `costs` those of a column, and totals; `box`
    the ends of a box.
    """

    people: int
    log2: Floats
    rows: Ints
    costs: Floats
    box: Ints


class Blocks(NamedTuple):
    """Blocks that formed: the slots of all of them, and how many each has."""

    slots: Ints
    sizes: Ints


def likeness_of(prices: Prices, limit: float) -> Likeness:
    """Return how rows must be alike that cost at most `limit` together."""
    facts, values, weight, least = prices
    order = np.argsort(-weight * least, kind="stable")
    units, sizes = np.zeros_like(order), np.ones_like(order)
    same = alike(facts, values, weight, least, order, limit, units, sizes)
    return Likeness(limit, units, sizes, order, same)


def _bucket(key: Any, buckets: int) -> Any:
    """Return the bucket of a key, or of each of an array of keys: one of a power of two."""
    mixed = (key ^ (key >> 17)) * 0x9E3779B1
    return (mixed ^ (mixed >> 29)) & (buckets - 1)


bucket_of = inner(_bucket) if COMPILED else np.errstate(over="ignore")(_bucket)  # it overflows on purpose


def file_all(likeness: Likeness, qi: Ints, slots: Ints, index: Lists, keys: Ints) -> None:
    """Put rows into the buckets of their keys."""
    found = np.zeros(len(slots), dtype=np.int64)
    for q in np.flatnonzero(likeness.units).tolist():
        found = found * likeness.sizes[q] + qi[slots, q] // likeness.units[q]
    keys[slots] = found
    put_by_key(index, slots, keys)


def put_by_key(index: Lists, slots: Ints, keys: Ints) -> None:
    """Put rows into the buckets of the keys they have."""
    put_all(index, slots, _bucket(keys[slots], len(index.head)))


@inner
def near_rows(prices: Prices, likeness: Likeness, qi: Ints, slot: int, count: int, room: Room) -> int:
    """Keep of the rows found those that cost at most the limit together with one row; return how many."""
    found, codes, costs, total = room.rows[0], room.rows[1], room.costs[0], room.costs[1]
    facts, values, weight, _ = prices
    for i in range(count):
        total[i] = 0.0
    for place in range(likeness.same, len(likeness.order)):
        q = likeness.order[place]
        for i in range(count):
            codes[i] = qi[found[i], q]
        widen_column(facts, values, weight[q], q, qi[slot, q], codes, count, costs)
        count = keep(costs, count, likeness.limit, found, total)
    return count


@inner
def is_in(subject: Ints, members: Ints, count: int, person: int) -> bool:
    """Tell whether one of the first `count` members is about the person."""
    for i in range(count):  # noqa: SIM110 - `any` with a generator does not compile
        if subject[members[i]] == person:
            return True
    return False


@inner
def grow(prices: Prices, qi: Ints, subject: Ints, count: int, left: int, limit: float, room: Room) -> int:
    """Add found rows to the members, each time the one of least CAILDistance, until they are enough people.

    Returns how many members there are, 0 if that cannot be done within the limit. What a row costs can only rise while
    the box widens: it is priced again only where its last price would make it the best.
    """
    facts, values, weight, _ = prices
    wanted, log2, found, members, total = room.people, room.log2, room.rows[0], room.rows[2], room.costs[1]
    low, high, people = room.box[0], room.box[1], 0
    for q in range(len(low)):
        low[q] = high[q] = qi[members[0], q]
    for i in range(count):
        people += not is_in(subject, members, i, subject[members[i]])
        for q in range(len(low)):
            low[q], high[q] = min(low[q], qi[members[i], q]), max(high[q], qi[members[i], q])
    loss = union(facts, values, weight, qi, members[0], low, high)
    for i in range(left):
        total[i] = 0.0
    while people < wanted:
        scale, best, least = log2[count], -1, np.inf
        for i in range(left):
            if total[i] + (total[i] - loss) * scale >= least:
                continue
            total[i] = union(facts, values, weight, qi, found[i], low, high)
            distance = total[i] + (total[i] - loss) * scale
            if distance >= least or distance > limit:
                continue
            if is_in(subject, members, count, subject[found[i]]):
                total[i] = np.inf
            else:
                best, least = i, distance
        if best < 0:
            return 0
        slot = found[best]
        members[count] = slot
        count += 1
        people += 1
        loss, total[best] = total[best], np.inf
        for q in range(len(low)):
            low[q], high[q] = min(low[q], qi[slot, q]), max(high[q], qi[slot, q])
    return count


def nearest_people(
    prices: Prices, qi: Ints, subject: Ints, seed: Ints, candidates: Ints, wanted: int, limit: float, log2: Floats
) -> Ints:
    """Return the seed with its nearest candidates by CAILDistance, `wanted` people in all; none if there are fewer."""
    room = _room(wanted, log2, len(seed) + len(candidates), qi.shape[1])
    room.rows[0, : len(candidates)] = candidates
    room.rows[2, : len(seed)] = seed
    return room.rows[2, : _grow(prices, qi, subject, len(seed), len(candidates), limit, room)]


def _room(people: int, log2: Floats, most: int, width: int) -> Room:
    rows, costs = np.empty((3, most + 1), dtype=np.int64), np.empty((2, most))
    return Room(people, log2, rows, costs, np.empty((2, width), dtype=np.int64))


@kernel
def _grow(prices: Prices, qi: Ints, subject: Ints, count: int, left: int, limit: float, room: Room) -> int:
    return grow(prices, qi, subject, count, left, limit, room)


def arrive(
    prices: Prices, likeness: Likeness, qi: Ints, subject: Ints, slots: Ints, filed: Filed, wanted: int, log2: Floats
) -> tuple[Ints, Ints]:
    """Let rows arrive one by one and return the blocks that formed: their slots, and their sizes.

    Around each newcomer a cluster is grown of filed rows within the limit; one of `wanted` people becomes a block, and
    its rows are no longer filed. Other newcomers are filed.
    """
    room = _room(wanted, log2, max(FEWEST_SEEN, SEEN_PER_PERSON * wanted), qi.shape[1])
    most = min(filed.rows + len(slots), wanted * len(slots))
    blocks = Blocks(np.empty(most, dtype=np.int64), np.empty(len(slots), dtype=np.int64))
    sizes = blocks.sizes[: _arrive(prices, likeness, qi, subject, slots, filed, room, blocks)]
    return blocks.slots[: sizes.sum()], sizes


@kernel
def _arrive(
    prices: Prices, likeness: Likeness, qi: Ints, subject: Ints, slots: Ints, filed: Filed, room: Room, out: Blocks
) -> int:
    """Fill `out`, and return how many blocks there are."""
    index, keys, _ = filed
    wanted, found, members, most, chosen, sizes = (
        room.people, room.rows[0], room.rows[2], room.costs.shape[1], out.slots, out.sizes,
    )  # fmt: skip
    filled = blocks = 0
    for n in range(len(slots)):
        slot = slots[n]
        key = key_of(likeness.units, likeness.sizes, qi, slot)
        bucket = bucket_of(key, len(index.head))
        count = 0
        if likeness.limit >= 0.0:
            seen, other, left = 0, index.head[bucket], 0
            while other >= 0 and seen < most:
                found[left] = other
                left += keys[other] == key
                seen += 1
                other = index.after[other]
            if left >= wanted - 1:
                left = near_rows(prices, likeness, qi, slot, left, room)
            if left >= wanted - 1:
                for i in range(left // 2):  # of equal rows the oldest first
                    found[i], found[left - 1 - i] = found[left - 1 - i], found[i]
                members[0] = slot
                count = grow(prices, qi, subject, 1, left, likeness.limit, room)
        if count == 0:
            keys[slot] = key
            put(index, slot, bucket)
            continue
        for i in range(count):
            take(index, members[i])
            chosen[filled + i] = members[i]
        filled += count
        sizes[blocks] = count
        blocks += 1
    return blocks
