"""Which blocks belong together, by their boxes alone: the nearest of one, and pairs of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import Prices, cell_prices, inner, kernel, price


class BlockBoxes(NamedTuple):
    """The ends of the boxes of blocks, how many rows each holds (0: it is out of the question), and its price."""

    low: Ints
    high: Ints
    size: Ints
    cost: Floats


def boxes_of(prices: Prices, qi: Ints, blocks: list[Ints]) -> BlockBoxes:
    """Return the boxes of blocks of rows."""
    size = np.array([len(block) for block in blocks], dtype=np.int64)
    rows, first = qi[np.concatenate(blocks)], np.concatenate([[0], np.cumsum(size)[:-1]])
    low, high = np.minimum.reduceat(rows, first, axis=0), np.maximum.reduceat(rows, first, axis=0)
    cost = np.zeros(len(low))
    for column, weight in zip(cell_prices(prices.facts, prices.values, low, high).T, prices.weight, strict=True):
        cost += weight * column
    return BlockBoxes(low, high, size, cost)


@inner
def _nearest(prices: Prices, boxes: BlockBoxes, block: int) -> tuple[int, float, float]:
    """Return the block whose union with one of them adds least to the loss of all rows, how much, and its price."""
    facts, values, weight, _ = prices
    low, high, size, cost = boxes
    found, best, union = -1, np.inf, 0.0
    for other in range(len(size)):
        if other == block or size[other] == 0:
            continue
        rows = size[block] + size[other]
        enough = (best + cost[block] * size[block] + cost[other] * size[other]) / rows  # dearer unions are not better
        total = 0.0
        for q in range(len(weight)):
            ends = min(low[block, q], low[other, q]), max(high[block, q], high[other, q])
            total += weight[q] * price(facts, values, q, ends[0], ends[1])
            if total > enough:
                break
        added = total * rows - cost[block] * size[block] - cost[other] * size[other]
        if added < best:
            found, best, union = other, added, total
    return found, best, union


@kernel
def nearest_box(prices: Prices, boxes: BlockBoxes, block: int) -> tuple[int, float]:
    """Return the block whose union with one of them adds least to the loss of all rows, and what that union costs."""
    found, _, union = _nearest(prices, boxes, block)
    return found, union


def pair_up(prices: Prices, boxes: BlockBoxes) -> Ints:
    """Return the partner of each block: of all pairs the one that adds least comes first, -1 for one that is left over.

    Two blocks that are nearest to each other are a pair; then the others look again. `boxes.size` is used up.
    """
    partner = np.full(len(boxes.size), -1, dtype=np.int64)
    _pair_up(prices, boxes, partner, partner.copy())
    return partner


@kernel
def _pair_up(prices: Prices, boxes: BlockBoxes, partner: Ints, nearest: Ints) -> None:
    size, unpaired = boxes.size, len(partner)
    while unpaired > 1:
        for block in range(len(nearest)):
            if size[block] > 0 and (nearest[block] < 0 or size[nearest[block]] == 0):
                nearest[block], _, _ = _nearest(prices, boxes, block)
        before = unpaired
        for block in range(len(nearest)):
            other = nearest[block]
            if size[block] > 0 and other > block and size[other] > 0 and nearest[other] == block:
                partner[block], partner[other] = other, block
                size[block] = size[other] = 0
                unpaired -= 2
        if unpaired == before:  # equal distances went round in a circle: the first takes its nearest
            for block in range(len(nearest)):
                if size[block] > 0:
                    other = nearest[block]
                    partner[block], partner[other] = other, block
                    size[block] = size[other] = 0
                    unpaired -= 2
                    break
