"""Compiled improvement of blocks that leave together: rows move to, or change places with, where they cost less."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import KIND, SIZE, START, TABLE, Prices, inner, kernel, price
from stream_anon.stream.kernels.walk import people_of

LITTLE = 1e-9
"""A smaller gain is rounding."""

TRIES = 4
"""Blocks with which a row tries to change places, cheapest first."""

WORTH = 0.05
"""The share of its block's loss that a row must save by leaving: for less, no better place is sought."""

HUGE = 1e18
DEAR = 2.0


LOW, LOW_NEXT, HIGH, HIGH_NEXT = range(4)
"""The ends of a box, each followed by what it is without the row at it."""


class Boxes(NamedTuple):
    """Blocks of rows and their boxes: `ends` by kind, column and block, what each box costs, and how many rows it has.

    Block b holds the rows `member[b, :size[b]]`, and row r is at `place[r]` among them. Where the prices of column q
    are a table, `joined[first[q] + code, b]` is what the box of b costs there once it holds that code; else `first` is
    -1.
    """

    ends: Ints
    price: Floats
    size: Ints
    member: Ints
    place: Ints
    first: Ints
    joined: Floats


class Room(NamedTuple):
    """Who each row is about, and room to work in: costs per block, ends of two boxes, rows of a block, marks."""

    person: Ints
    costs: Floats
    ends: Ints
    spare: Ints
    seen: Ints


@inner
def cell_price(facts: Ints, values: Floats, q: int, low: int, high: int) -> float:
    """Return the cost of a range of column q; a table is looked up without a call."""
    if facts[q, KIND] == TABLE:
        return values[facts[q, START] + low * facts[q, SIZE] + high]  # type: ignore[no-any-return]
    return price(facts, values, q, low, high)


@inner
def join_prices(prices: Prices, qi: Ints, boxes: Boxes, row: int, total: Floats) -> None:
    """Compute the price of each box once it holds a row."""
    facts, values, weight, _ = prices
    for b in range(len(total)):
        total[b] = 0.0
    for q in range(len(weight)):
        at = qi[row, q]
        if boxes.first[q] >= 0:
            part = boxes.joined[boxes.first[q] + at]
            for b in range(len(total)):
                total[b] += part[b]
        else:
            share, lows, highs = weight[q], boxes.ends[LOW, q], boxes.ends[HIGH, q]
            for b in range(len(total)):
                total[b] += share * price(facts, values, q, min(lows[b], at), max(highs[b], at))
    for b in range(len(total)):
        if boxes.size[b] == 0:
            total[b] = HUGE


@inner
def fit(prices: Prices, qi: Ints, boxes: Boxes, b: int) -> None:
    """Fit the box of a block to its rows."""
    facts, values, weight, _ = prices
    total = 0.0
    for q in range(len(weight)):
        low, low_next, high, high_next = qi[boxes.member[b, 0], q], 1 << 62, qi[boxes.member[b, 0], q], -(1 << 62)
        for i in range(1, boxes.size[b]):
            at = qi[boxes.member[b, i], q]
            if at < low:
                low, low_next = at, low
            else:
                low_next = min(low_next, at)
            if at > high:
                high, high_next = at, high
            else:
                high_next = max(high_next, at)
        boxes.ends[LOW, q, b], boxes.ends[LOW_NEXT, q, b] = low, low_next
        boxes.ends[HIGH, q, b], boxes.ends[HIGH_NEXT, q, b] = high, high_next
        total += weight[q] * cell_price(facts, values, q, low, high)
        if boxes.first[q] >= 0:
            for code in range(facts[q, SIZE]):
                cost = values[facts[q, START] + min(low, code) * facts[q, SIZE] + max(high, code)]
                boxes.joined[boxes.first[q] + code, b] = weight[q] * cost
    boxes.price[b] = total


@inner
def ends_without(qi: Ints, boxes: Boxes, b: int, row: int, low: Ints, high: Ints) -> None:
    """Compute the ends of the box of a block without one of its rows."""
    for q in range(len(low)):
        at = qi[row, q]
        low[q] = boxes.ends[LOW_NEXT if at == boxes.ends[LOW, q, b] else LOW, q, b]
        high[q] = boxes.ends[HIGH_NEXT if at == boxes.ends[HIGH, q, b] else HIGH, q, b]


@inner
def with_row(prices: Prices, qi: Ints, low: Ints, high: Ints, row: int, most: float) -> float:
    """Return the price of a box once it holds a row, or of some of its columns if they cost `most` already."""
    facts, values, weight, _ = prices
    total = 0.0
    for q in range(len(weight)):
        at = qi[row, q]
        total += weight[q] * cell_price(facts, values, q, min(low[q], at), max(high[q], at))
        if total >= most:
            break
    return total


@inner
def box_of(prices: Prices, low: Ints, high: Ints) -> float:
    """Return the price of a box."""
    facts, values, weight, _ = prices
    total = 0.0
    for q in range(len(weight)):
        total += weight[q] * cell_price(facts, values, q, low[q], high[q])
    return total


@inner
def least_of(costs: Floats) -> int:
    """Return the place of the least of the costs, the first of equal ones."""
    best = 0
    for b in range(1, len(costs)):
        if costs[b] < costs[best]:
            best = b
    return best


@inner
def still_enough(boxes: Boxes, out: int, into: int, b: int, wanted: int, room: Room) -> bool:
    """Tell whether a block has enough people if a row of it is replaced by another, or leaves (`into` is itself)."""
    size, spare = boxes.size[b], room.spare
    for i in range(size):
        spare[i] = boxes.member[b, i]
    spare[boxes.place[out]] = spare[size - 1] if into == out else into
    return bool(people_of(room.person, spare, size - (into == out), room.seen) >= wanted)


@inner
def put_in(prices: Prices, qi: Ints, boxes: Boxes, block: Ints, row: int, to: int) -> None:
    """Add a row to a block."""
    block[row] = to
    boxes.place[row] = boxes.size[to]
    boxes.member[to, boxes.size[to]] = row
    boxes.size[to] += 1
    fit(prices, qi, boxes, to)


@inner
def cheapest_place(prices: Prices, qi: Ints, boxes: Boxes, row: int, joined: Floats) -> tuple[int, float]:
    """Return the block where a row adds least, and how much; none has more rows than it may."""
    join_prices(prices, qi, boxes, row, joined)
    best, to, room = HUGE, -1, boxes.member.shape[1]
    for b in range(len(joined)):
        cost = joined[b] * (boxes.size[b] + 1) - boxes.price[b] * boxes.size[b]
        if cost < best and boxes.size[b] < room:
            best, to = cost, b
    return to, best


@inner
def dissolve(prices: Prices, qi: Ints, boxes: Boxes, block: Ints, b: int, joined: Floats, spare: Ints) -> bool:
    """Let each row of a block join the one where it adds least, if that makes all cheaper; tell whether it did."""
    size, saved = boxes.size[b], boxes.price[b] * boxes.size[b]
    for i in range(size):
        spare[i] = boxes.member[b, i]
    boxes.size[b], moved, added = 0, 0, 0.0
    while moved < size:
        to, cost = cheapest_place(prices, qi, boxes, spare[moved], joined)
        if to < 0 or added + cost > saved - LITTLE:
            break
        put_in(prices, qi, boxes, block, spare[moved], to)
        added += cost
        moved += 1
    if moved == size:
        boxes.price[b] = 0.0
        return True
    while moved > 0:
        moved -= 1
        to = block[spare[moved]]
        boxes.size[to] -= 1  # the row was the last to join it
        fit(prices, qi, boxes, to)
    boxes.size[b] = size
    for i in range(size):
        block[spare[i]] = b
        boxes.place[spare[i]] = i
    return False


@inner
def best_change(prices: Prices, qi: Ints, boxes: Boxes, own: int, row: int, wanted: int, room: Room) -> tuple[int, int]:
    """Return the block that a row should go to, its own if it should stay, and the row that should come in its place.

    That is the row itself if it just leaves, because its block has enough people without it.
    """
    low, high, other_low, other_high = room.ends[0], room.ends[1], room.ends[2], room.ends[3]
    joined, added, size = room.costs[0], room.costs[1], boxes.size[own]
    ends_without(qi, boxes, own, row, low, high)
    alone = box_of(prices, low, high)
    gain, spared = (boxes.price[own] - alone) * size, size > wanted
    if gain <= WORTH * boxes.price[own] * size and not spared:
        return own, row
    join_prices(prices, qi, boxes, row, joined)
    best, to, swap = -LITTLE, own, row
    base, most_rows = alone * (size - 1) - boxes.price[own] * size, boxes.member.shape[1]
    for b in range(len(joined)):
        added[b] = (joined[b] - boxes.price[b]) * boxes.size[b]
        if spared and b != own and boxes.size[b] < most_rows and added[b] + joined[b] + base < best:
            best, to = added[b] + joined[b] + base, b
    added[own] = HUGE
    if to != own and not still_enough(boxes, row, row, own, wanted, room):
        best, to = -LITTLE, own
    if to != own or gain <= LITTLE:
        return to, row
    for _ in range(TRIES):
        b = least_of(added)
        whole = boxes.price[b] * boxes.size[b]
        if added[b] - gain - whole >= best:
            break
        added[b] = HUGE
        for i in range(boxes.size[b]):
            other = boxes.member[b, i]
            most = boxes.price[own] + (best + whole) / size
            change = (with_row(prices, qi, low, high, other, most) - boxes.price[own]) * size
            if change - whole >= best:
                continue
            ends_without(qi, boxes, b, other, other_low, other_high)
            most = boxes.price[b] + (best - change) / boxes.size[b]
            there = with_row(prices, qi, other_low, other_high, row, most)
            change += (there - boxes.price[b]) * boxes.size[b]
            if change < best:
                best, to, swap = change, b, other
    if swap != row and len(room.person) > 0:
        fair = still_enough(boxes, row, swap, own, wanted, room)
        if not fair or not still_enough(boxes, swap, row, to, wanted, room):
            to = own
    return to, swap


@inner
def change_places(boxes: Boxes, block: Ints, own: int, row: int, to: int, swap: int) -> None:
    """Move a row to another block, in exchange for a row of that one or, if `swap` is the row itself, for none."""
    here, last = boxes.place[row], boxes.size[own] - 1
    if swap != row:
        there = boxes.place[swap]
        boxes.member[own, here], boxes.member[to, there] = swap, row
        boxes.place[swap], boxes.place[row] = here, there
        block[swap], block[row] = own, to
        return
    moved = boxes.member[own, last]
    boxes.member[own, here] = moved
    boxes.place[moved] = here
    boxes.size[own] = last
    boxes.place[row] = boxes.size[to]
    boxes.member[to, boxes.size[to]] = row
    boxes.size[to] += 1
    block[row] = to


def improve(prices: Prices, qi: Ints, block: Ints, blocks: int, wanted: int, person: Ints, passes: int) -> None:
    """Place the rows that have no block where they add least, then move and exchange rows as long as that pays.

    Every block keeps `wanted` people. `block` is changed in place.
    """
    n, width = qi.shape
    held, facts = block[block >= 0], prices.facts
    room = n - len(held) + 4 * wanted + int(np.bincount(held, minlength=blocks).max())
    table = (facts[:, KIND] == TABLE) & (facts[:, START] >= 0)
    codes = np.where(table, facts[:, SIZE], 0)
    boxes = Boxes(
        ends=np.empty((4, width, blocks), dtype=np.int64),
        price=np.empty(blocks),
        size=np.zeros(blocks, dtype=np.int64),
        member=np.empty((blocks, room), dtype=np.int64),
        place=np.empty(n, dtype=np.int64),
        first=np.where(table, np.cumsum(codes) - codes, -1),
        joined=np.empty((int(codes.sum()), blocks)),
    )
    space = Room(
        person=person,
        costs=np.empty((2, blocks)),
        ends=np.empty((4, width), dtype=np.int64),
        spare=np.empty(room + 1, dtype=np.int64),
        seen=np.zeros(len(person) + 2, dtype=np.int64),
    )
    _improve(prices, qi, boxes, block, wanted, np.zeros(blocks, dtype=np.int64), passes, space)


@kernel
def _improve(
    prices: Prices, qi: Ints, boxes: Boxes, block: Ints, wanted: int, changed: Ints, passes: int, room: Room
) -> None:
    """Do what `improve` says; `changed` is the pass in which a block was last changed."""
    n, blocks, joined = len(block), len(changed), room.costs[0]
    for row in range(n):
        b = block[row]
        if b >= 0:
            boxes.place[row] = boxes.size[b]
            boxes.member[b, boxes.size[b]] = row
            boxes.size[b] += 1
    for b in range(blocks):
        fit(prices, qi, boxes, b)
    for row in range(n):
        if block[row] < 0:
            to, _ = cheapest_place(prices, qi, boxes, row, joined)
            put_in(prices, qi, boxes, block, row, to)
    for turn in range(passes):
        moved, average = 0, 0.0
        for b in range(blocks):
            average += boxes.price[b] * boxes.size[b] / n
        for b in range(blocks):
            if boxes.size[b] > 0 and boxes.price[b] > DEAR * average and changed[b] >= turn:
                moved += dissolve(prices, qi, boxes, block, b, joined, room.spare)
        for row in range(n):
            own = block[row]
            if boxes.price[own] <= 0.0 or changed[own] < turn:
                continue
            to, swap = best_change(prices, qi, boxes, own, row, wanted, room)
            if to == own:
                continue
            change_places(boxes, block, own, row, to, swap)
            for b in (own, to):
                fit(prices, qi, boxes, b)
                changed[b] = turn + 1
            moved += 1
        if moved == 0:
            break
