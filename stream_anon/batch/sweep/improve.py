"""Rounds of improvement over all classes, compiled. Every change leaves classes with enough people."""

from __future__ import annotations

from stream_anon.batch.sweep.index import reindex
from stream_anon.batch.sweep.peel import peel
from stream_anon.batch.sweep.recut import recut
from stream_anon.batch.sweep.search import Search, room_of
from stream_anon.batch.sweep.trade import trade
from stream_anon.core.kernels import compiled


@compiled
def improve(search: Search, near: int) -> None:
    """Run one round: peel, trade, recut."""
    classes, room = search.classes, room_of(search, near)
    reindex(search.places, classes)
    for c in range(classes.used[0]):
        if classes.size[c] and classes.loss[c] > 0.0:
            peel(search, room, c)
    for c in range(classes.used[0]):
        for end in range(2 * search.dense.code.shape[1]):
            q = end >> 1
            if classes.loss[c] > 0.0 and classes.low[c, q] < classes.high[c, q]:
                extreme = classes.low[c, q] if end & 1 else classes.high[c, q]
                trade(search, room, c, q, extreme)
    reindex(search.places, classes)
    for c in range(classes.used[0]):
        if classes.size[c] and classes.loss[c] > 0.0:
            recut(search, room, c)
