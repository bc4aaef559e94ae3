"""Compiled improvement of blocks that leave together: rows move to, or change places with, where they cost less."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import COMPILED, KIND, SIZE, START, TABLE, Prices, compiled, inner, price
from stream_anon.stream.kernels.walk import people_of

LITTLE = 1e-9
"""A smaller gain is rounding."""

TRIES = 4
"""Blocks with which a row tries to change places, cheapest first."""

WORTH = 0.05
"""The share of its block's loss that a row must save by leaving: for less, no better place is sought."""

HUGE = 1e18


class Boxes(NamedTuple):
    """Blocks of rows and their boxes, column by column: the ends, the ends without the row at an end, price and rows.

    Block b holds the rows `member[b, :size[b]]`, and row r is at `place[r]` among them.
    """

    low: Ints
    high: Ints
    low_next: Ints
    high_next: Ints
    price: Floats
    size: Ints
    member: Ints
    place: Ints


@inner
def _join_loop(prices: Prices, qi: Ints, row: int, low: Ints, high: Ints, count: int, total: Floats) -> None:
    facts, values, weight, _ = prices
    for b in range(count):
        total[b] = 0.0
    for q in range(len(weight)):
        at, share, lows, highs = qi[row, q], weight[q], low[q], high[q]
        if facts[q, KIND] == TABLE:
            start, size = facts[q, START], facts[q, SIZE]
            for b in range(count):
                total[b] += share * values[start + min(lows[b], at) * size + max(highs[b], at)]
        else:
            for b in range(count):
                total[b] += share * price(facts, values, q, min(lows[b], at), max(highs[b], at))


def _join_numpy(prices: Prices, qi: Ints, row: int, low: Ints, high: Ints, count: int, total: Floats) -> None:
    for b in range(count):
        total[b] = 0.0
        for q in range(len(prices.weight)):
            at = qi[row, q]
            cost = price(prices.facts, prices.values, q, min(low[q, b], at), max(high[q, b], at))
            total[b] += prices.weight[q] * cost


join_prices = _join_loop if COMPILED else _join_numpy
"""Compute the price of each of the first boxes once it holds a row."""


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
        total += weight[q] * price(facts, values, q, low, high)
    boxes.price[b] = total


@inner
def without(prices: Prices, qi: Ints, boxes: Boxes, b: int, row: int, low: Ints, high: Ints) -> float:
    """Compute the box of a block without one of its rows; return its price."""
    facts, values, weight, _ = prices
    total = 0.0
    for q in range(len(weight)):
        at = qi[row, q]
        low[q] = boxes.low_next[q, b] if at == boxes.low[q, b] else boxes.low[q, b]
        high[q] = boxes.high_next[q, b] if at == boxes.high[q, b] else boxes.high[q, b]
        total += weight[q] * price(facts, values, q, low[q], high[q])
    return total


@inner
def with_row(prices: Prices, qi: Ints, low: Ints, high: Ints, row: int) -> float:
    """Return the price of a box once it holds a row."""
    facts, values, weight, _ = prices
    total = 0.0
    for q in range(len(weight)):
        at = qi[row, q]
        total += weight[q] * price(facts, values, q, min(low[q], at), max(high[q], at))
    return total


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
    boxes = Boxes(
        np.empty((width, blocks), dtype=np.int64),
        np.empty((width, blocks), dtype=np.int64),
        np.empty((width, blocks), dtype=np.int64),
        np.empty((width, blocks), dtype=np.int64),
        np.empty(blocks),
        np.zeros(blocks, dtype=np.int64),
        np.empty((blocks, most), dtype=np.int64),
        np.empty(n, dtype=np.int64),
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
    most = boxes.member.shape[1]
    joined, added = np.empty(blocks), np.empty(blocks)
    low, high = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    other_low, other_high = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    spare, seen = np.empty(most + 1, dtype=np.int64), np.zeros(len(person) + 2, dtype=np.int64)
    for row in range(n):
        if block[row] >= 0:
            continue
        join_prices(prices, qi, row, boxes.low, boxes.high, blocks, joined)
        best, to = HUGE, 0
        for b in range(blocks):
            cost = joined[b] * (boxes.size[b] + 1) - boxes.price[b] * boxes.size[b]
            if cost < best:
                best, to = cost, b
        block[row] = to
        boxes.place[row] = boxes.size[to]
        boxes.member[to, boxes.size[to]] = row
        boxes.size[to] += 1
        fit(prices, qi, boxes, to)
    changed = np.zeros(blocks, dtype=np.int64)  # the pass in which a block was last changed
    for turn in range(passes):
        moved = 0
        for row in range(n):
            own = block[row]
            if boxes.price[own] <= 0.0 or changed[own] < turn:
                continue
            size = boxes.size[own]
            alone = without(prices, qi, boxes, own, row, low, high)
            gain, spared = (boxes.price[own] - alone) * size, size > wanted
            if gain <= WORTH * boxes.price[own] * size and not spared:
                continue
            join_prices(prices, qi, row, boxes.low, boxes.high, blocks, joined)
            best, to, swap = -LITTLE, -1, -1
            base = alone * (size - 1) - boxes.price[own] * size
            for b in range(blocks):
                added[b] = (joined[b] - boxes.price[b]) * boxes.size[b]
                if spared and b != own and boxes.size[b] < most and added[b] + joined[b] + base < best:
                    best, to = added[b] + joined[b] + base, b
            added[own] = HUGE
            if to >= 0 and not still_enough(boxes, own, row, -1, wanted, person, spare, seen):
                best, to = -LITTLE, -1
            if to < 0 and gain > LITTLE:
                for _try in range(TRIES):
                    b = int(np.argmin(added))
                    if added[b] - gain - boxes.price[b] * boxes.size[b] >= best:
                        break
                    added[b] = HUGE
                    for i in range(boxes.size[b]):
                        other = boxes.member[b, i]
                        change = (with_row(prices, qi, low, high, other) - boxes.price[own]) * size
                        if change - boxes.price[b] * boxes.size[b] >= best:
                            continue
                        without(prices, qi, boxes, b, other, other_low, other_high)
                        there = with_row(prices, qi, other_low, other_high, row)
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
