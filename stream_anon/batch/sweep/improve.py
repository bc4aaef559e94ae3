"""Rounds of improvement over all classes, compiled. Every change leaves classes that satisfy the policy."""

from __future__ import annotations

import numpy as np

from stream_anon.batch.shared.classes import Classes
from stream_anon.batch.shared.dense import Dense
from stream_anon.batch.sweep.index import Index, reindex
from stream_anon.batch.sweep.peel import peel
from stream_anon.batch.sweep.recut import POOL, recut
from stream_anon.batch.sweep.trade import trade
from stream_anon.core.judging.need import CompiledRequirements
from stream_anon.core.kernels import compiled


@compiled
def improve(
    dense: Dense, classes: Classes, index: Index, need: CompiledRequirements, near: int, monotone: bool
) -> None:
    """Run one round: peel, trade, recut. If more rows can break a class, only recut runs, as it judges each class."""
    n, width = dense.code.shape
    rows, spare = np.empty(2 * n, dtype=np.int64), np.empty(n, dtype=np.int64)
    given = np.zeros(len(classes.size), dtype=np.int64)
    low, high = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    if monotone:
        reindex(index, classes)
        for c in range(classes.used[0]):
            if classes.size[c] and classes.loss[c] > 0.0:
                peel(dense, classes, index, need, c, rows, spare, low, high)
        for c in range(classes.used[0]):
            for end in range(2 * width):
                q = end >> 1
                if classes.loss[c] > 0.0 and classes.low[c, q] < classes.high[c, q]:
                    extreme = classes.low[c, q] if end & 1 else classes.high[c, q]
                    trade(dense, classes, index, need, c, q, extreme, rows, spare, given, low, high)
    reindex(index, classes)
    sorted_rows, left_loss = np.empty(POOL, dtype=np.int64), np.empty(POOL)
    distance, found = np.empty(near), np.empty(near, dtype=np.int64)
    todo = np.empty((POOL, 2), dtype=np.int64)
    for c in range(classes.used[0]):
        if classes.size[c] and classes.loss[c] > 0.0:
            recut(
                dense, classes, index, need, c, distance, found,
                rows, spare, sorted_rows, left_loss, low, high, todo,
            )  # fmt: skip
