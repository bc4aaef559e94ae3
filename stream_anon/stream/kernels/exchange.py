"""Compiled improvement of blocks that leave together: rows move to, or change places with, where they cost less."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import KIND, SIZE, START, TABLE, Prices, compiled, inner, price
from stream_anon.stream.kernels.walk import people_of

LITTLE = 1e-9
"""A smaller gain is rounding."""

TRIES = 4
"""Blocks with which a row tries to change places, cheapest first."""

WORTH = 0.05
"""The share of its block's loss that a row must save by leaving: for less, no better place is sought."""

HUGE = 1e18
DEAR = 2.0


class Boxes(NamedTuple):
    """Blocks of rows and their boxes, column by column: the ends, the ends without the row at an end, price and rows.

    Block b holds the rows `member[b, :size[b]]`, and row r is at `place[r]` among them. Where the prices of column q
    are a table, `joined[first[q] + code, b]` is what the box of b costs there once it holds that code; else `first` is
    -1.
    """

    low: Ints
    high: Ints
    low_next: Ints
    high_next: Ints
    price: Floats
    size: Ints
    member: Ints
    place: Ints
    first: Ints
    joined: Floats


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
            share, lows, highs = weight[q], boxes.low[q], boxes.high[q]
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
        boxes.low[q, b], boxes.low_next[q, b], boxes.high[q, b], boxes.high_next[q, b] = low, low_next, high, high_next
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
        low[q] = boxes.low_next[q, b] if at == boxes.low[q, b] else boxes.low[q, b]
        high[q] = boxes.high_next[q, b] if at == boxes.high[q, b] else boxes.high[q, b]


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
def still_enough(boxes: Boxes, b: int, out: int, into: int, wanted: int, person: Ints, spare: Ints, seen: Ints) -> bool:
    """Tell whether a block has enough people if one row is replaced by another, or leaves (`into` is -1)."""
    count = 0
    for i in range(boxes.size[b]):
        row = boxes.member[b, i]
        row = into if row == out else row
        if row >= 0:
            spare[count] = row
            count += 1
    return bool(people_of(person, spare, count, seen) >= wanted)


@compiled
def lay_boxes(prices: Prices, qi: Ints, block: Ints, blocks: int, room: int) -> Boxes:
    """Collect the rows of each block and fit its box; a block may grow by `room` rows."""
    n, width = qi.shape
    size = np.zeros(blocks, dtype=np.int64)
    for row in range(n):
        if block[row] >= 0:
            size[block[row]] += 1
    most = room + (size.max() if blocks else 0)
    first, codes = np.full(width, -1, dtype=np.int64), 0
    for q in range(width):
        if prices.facts[q, KIND] == TABLE and prices.facts[q, START] >= 0:
            first[q] = codes
            codes += prices.facts[q, SIZE]
    boxes = Boxes(
        np.empty((width, blocks), dtype=np.int64),
        np.empty((width, blocks), dtype=np.int64),
        np.empty((width, blocks), dtype=np.int64),
        np.empty((width, blocks), dtype=np.int64),
        np.empty(blocks),
        np.zeros(blocks, dtype=np.int64),
        np.empty((blocks, most), dtype=np.int64),
        np.empty(n, dtype=np.int64),
        first,
        np.empty((codes, blocks)),
    )
    for row in range(n):
        b = block[row]
        if b >= 0:
            boxes.place[row] = boxes.size[b]
            boxes.member[b, boxes.size[b]] = row
            boxes.size[b] += 1
    for b in range(blocks):
        fit(prices, qi, boxes, b)
    return boxes


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


@compiled
def improve(prices: Prices, qi: Ints, block: Ints, blocks: int, wanted: int, person: Ints, passes: int) -> Boxes:
    """Place the rows that have no block where they add least, then move and exchange rows as long as that pays.

    Every block keeps `wanted` people. `block` is changed in place.
    """
    n, width = qi.shape
    left = 0
    for row in range(n):
        left += block[row] < 0
    boxes = lay_boxes(prices, qi, block, blocks, left + 4 * wanted)
    room = boxes.member.shape[1]
    joined, added = np.empty(blocks), np.empty(blocks)
    low, high = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    other_low, other_high = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    spare, seen = np.empty(room + 1, dtype=np.int64), np.zeros(len(person) + 2, dtype=np.int64)
    for row in range(n):
        if block[row] >= 0:
            continue
        to, _ = cheapest_place(prices, qi, boxes, row, joined)
        put_in(prices, qi, boxes, block, row, to)
    changed = np.zeros(blocks, dtype=np.int64)  # the pass in which a block was last changed
    for turn in range(passes):
        moved, average = 0, 0.0
        for b in range(blocks):
            average += boxes.price[b] * boxes.size[b] / n
        for b in range(blocks):
            if boxes.size[b] > 0 and boxes.price[b] > DEAR * average and changed[b] >= turn:
                moved += dissolve(prices, qi, boxes, block, b, joined, spare)
        for row in range(n):
            own = block[row]
            if boxes.price[own] <= 0.0 or changed[own] < turn:
                continue
            size = boxes.size[own]
            ends_without(qi, boxes, own, row, low, high)
            alone = box_of(prices, low, high)
            gain, spared = (boxes.price[own] - alone) * size, size > wanted
            if gain <= WORTH * boxes.price[own] * size and not spared:
                continue
            join_prices(prices, qi, boxes, row, joined)
            best, to, swap = -LITTLE, -1, -1
            base = alone * (size - 1) - boxes.price[own] * size
            for b in range(blocks):
                added[b] = (joined[b] - boxes.price[b]) * boxes.size[b]
                if spared and b != own and boxes.size[b] < room and added[b] + joined[b] + base < best:
                    best, to = added[b] + joined[b] + base, b
            added[own] = HUGE
            if to >= 0 and not still_enough(boxes, own, row, -1, wanted, person, spare, seen):
                best, to = -LITTLE, -1
            if to < 0 and gain > LITTLE:
                for _try in range(TRIES):
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
                if swap >= 0 and len(person) > 0:
                    fair = still_enough(boxes, own, row, swap, wanted, person, spare, seen)
                    if not fair or not still_enough(boxes, to, swap, row, wanted, person, spare, seen):
                        to = -1
            if to < 0:
                continue
            if swap >= 0:
                here, there_at = boxes.place[row], boxes.place[swap]
                boxes.member[own, here], boxes.member[to, there_at] = swap, row
                boxes.place[swap], boxes.place[row] = here, there_at
                block[swap], block[row] = own, to
            else:
                last = boxes.member[own, size - 1]
                boxes.member[own, boxes.place[row]] = last
                boxes.place[last] = boxes.place[row]
                boxes.size[own] -= 1
                boxes.place[row] = boxes.size[to]
                boxes.member[to, boxes.size[to]] = row
                boxes.size[to] += 1
                block[row] = to
            fit(prices, qi, boxes, own)
            fit(prices, qi, boxes, to)
            changed[own] = changed[to] = turn + 1
            moved += 1
        if moved == 0:
            break
    return boxes
