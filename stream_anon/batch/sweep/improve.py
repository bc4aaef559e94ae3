"""Rounds of improvement over all classes. Every change leaves classes with enough people."""

from __future__ import annotations

from stream_anon.batch.sweep.index import reindex
from stream_anon.batch.sweep.peel import peel
from stream_anon.batch.sweep.recut import recut
from stream_anon.batch.sweep.search import Room, Search
from stream_anon.batch.sweep.trade import trade


def improve(search: Search, room: Room) -> None:
    """Run one round: peel, trade, recut. Each is a kernel of its own: one of all three would be compiled for longer."""
    reindex(search.places, search.classes)
    peel(search, room)
    trade(search, room)
    reindex(search.places, search.classes)
    recut(search, room)
