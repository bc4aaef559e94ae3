"""An index that finds the class where a row costs least without trying all of them; classes are filed under cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.batch.shared.classes import Classes
from stream_anon.batch.shared.dense import Dense, stretch
from stream_anon.batch.sweep.lattice import Lattice
from stream_anon.core.hierarchy import Ints
from stream_anon.core.kernels import inner, kernel

HUGE = 1e18
REACH = 400
"""Classes looked at in one search, the finest buckets first. Beyond it the loss gains less than 1 %."""

GRAINS, SAMPLE, SCAN = 10, 4_000, 150
"""Vectors that classes are filed under, classes by which they are chosen, and classes in a bucket that are enough."""


class Index(NamedTuple):
    """A hash index of classes: bucket b holds the classes `item[start[b]:start[b + 1]]`.

    A class is filed under the first vector of `grain`, fine to coarse, in whose cells its whole box lies; each vector
    is given by where its cells start among the lattice's names.
    """

    name: Ints
    grain: Ints
    start: Ints
    item: Ints


def index_of(lattice: Lattice, classes: Classes, count: int, rng: np.random.Generator) -> Index:
    """Choose the grains by a sample: from the top, lower each time the column that shortens the searches most."""
    pick = rng.permutation(count)[:SAMPLE]
    low, high, scale = classes.low[pick], classes.high[pick], max(1.0, count / SAMPLE)
    at = lattice.depth - 1
    chain, parent = [lattice.base + at * lattice.kinds], np.zeros(len(low), dtype=np.int64)
    while len(chain) < GRAINS and len(low) > 1:
        now = _scanned(parent)
        best, choice = now * 0.95, None
        if now * scale < SCAN * len(low):
            break
        for q in range(len(at)):
            for level in range(at[q]):
                inside, cell = _inside(lattice, q, level, low, high)
                cost = _scanned(np.where(inside, parent + cell, parent))
                if cost < best:
                    best, choice = cost, (q, level)
        if choice is None:
            break
        q, level = choice
        inside, cell = _inside(lattice, q, level, low, high)
        at = at.copy()
        at[q] = level
        chain.append(lattice.base + at * lattice.kinds)
        parent, low, high = (parent + cell)[inside], low[inside], high[inside]
    buckets = 1 << int(2 * len(classes.size)).bit_length()
    return Index(
        name=lattice.name,
        grain=np.ascontiguousarray(np.array(chain[::-1], dtype=np.int64)),
        start=np.zeros(buckets + 1, dtype=np.int64),
        item=np.empty(len(classes.size), dtype=np.int64),
    )


def _scanned(bucket: Ints) -> float:
    return float((np.unique(bucket, return_counts=True)[1].astype(np.float64) ** 2).sum())


def _inside(lattice: Lattice, q: int, level: int, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    base = lattice.base[q] + level * lattice.kinds[q]
    cell = lattice.name[base + low[:, q]]
    return cell == lattice.name[base + high[:, q]], cell


@inner
def bucket_of(index: Index, grain: int, point: Ints) -> int:
    """Return the bucket of a point's cells under one of the vectors."""
    name = grain * 0x9E3779B97F4A7C
    for q in range(len(point)):
        name += index.name[index.grain[grain, q] + point[q]]
    return (name ^ (name >> 29)) & (len(index.start) - 2)


@inner
def _bucket_of_class(index: Index, classes: Classes, c: int) -> int:
    grain, q = 0, 0
    while q < classes.low.shape[1]:
        base = index.grain[grain, q]
        if index.name[base + classes.low[c, q]] == index.name[base + classes.high[c, q]]:
            q += 1
        else:
            grain, q = grain + 1, 0
    return bucket_of(index, grain, classes.low[c])


@kernel
def reindex(index: Index, classes: Classes) -> None:
    """Rebuild the index from all classes."""
    start, item = index.start, index.item
    start[:] = 0
    for c in range(classes.used[0]):
        if classes.size[c]:
            start[_bucket_of_class(index, classes, c) + 1] += 1
    for b in range(len(start) - 1):
        start[b + 1] += start[b]
    for c in range(classes.used[0]):
        if classes.size[c]:
            b = _bucket_of_class(index, classes, c)
            item[start[b]] = c
            start[b] += 1
    for b in range(len(start) - 1, 0, -1):
        start[b] = start[b - 1]
    start[0] = 0


@inner
def nearest(dense: Dense, classes: Classes, index: Index, row: int, best: float, skip: int) -> tuple[int, float]:
    """Find the class other than `skip` where the row adds least to the loss, and how much; -1 if none below `best`."""
    found, seen, anything = -1, 0, best >= HUGE
    for grain in range(len(index.grain)):
        if seen > REACH and (found >= 0 or not anything):
            break
        b = bucket_of(index, grain, dense.code[row])
        seen += index.start[b + 1] - index.start[b]
        for place in range(index.start[b], min(index.start[b + 1], index.start[b] + 4 * REACH)):
            c = index.item[place]
            size = classes.size[c]
            if size == 0 or c == skip:
                continue
            limit, total = (best + size * classes.loss[c]) / (size + 1), 0.0
            for q in range(dense.code.shape[1]):
                code = dense.code[row, q]
                total += stretch(dense, q, min(code, classes.low[c, q]), max(code, classes.high[c, q]))
                if total >= limit:
                    break
            if total < limit:
                best, found = (size + 1) * total - size * classes.loss[c], c
    return found, best
