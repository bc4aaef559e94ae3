"""The lattice sweep: take classes of full-domain generalizations, cheapest first, then tighten and improve them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.batch.shared.blocks import settled
from stream_anon.batch.shared.classes import empty_classes, settle
from stream_anon.batch.shared.dense import Dense, densify
from stream_anon.batch.shared.leftovers import members_of, place_leftovers
from stream_anon.batch.sweep.improve import improve
from stream_anon.batch.sweep.index import index_of
from stream_anon.batch.sweep.lattice import Lattice, lattice_of
from stream_anon.batch.sweep.search import Search, room_of
from stream_anon.batch.sweep.settings import SweepSettings
from stream_anon.batch.sweep.walk import walk, walk_room
from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.judge import Judge
from stream_anon.core.schema import Schema
from stream_anon.grammar.fields import Settings

AT_ONCE = 250
"""Vectors walked between two words to the watcher."""


class Sweep:
    """Many full-domain generalizations at once, each used only where it is the cheapest that works; our own algorithm.

    1. Order the level vectors of all quasi-identifiers by average loss. Walk them from cheap to costly; at each, every
       class of the *remaining* rows that has enough people is taken out.
    2. A row that is left joins the class where it adds least.
    3. Every class is tightened to its own box. Rounds of improvement follow: rows at the end of a class leave it for
       better places (`peel`), leave it in exchange (`trade`), and two near classes are pooled and cut anew (`recut`).
    4. Privacy models judge the classes and can only refuse: a refused one is merged, whole, with its nearest.

    Rows that sit in a large enough class as they are stay exact, and only the rest is generalized, no more than it
    needs. Sensitive values never decide who is put together.

    >>> from stream_anon.testing.example import ages
    >>> rows, schema = ages([30, 30, 61, 30, 64, 90], k=3)
    >>> [index.tolist() for index in Sweep(SweepSettings())(rows, schema)]
    [[0, 1, 3], [2, 4, 5]]
    """

    settings: ClassVar[type[Settings]] = SweepSettings
    support: ClassVar[Support] = Support()
    nanoseconds: ClassVar[float] = 0.0

    def __init__(self, settings: SweepSettings, seed: int = 0) -> None:
        self._settings = settings
        self._seed = seed

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Return the groups; rows that fit nowhere are in none."""
        rng = np.random.default_rng(self._seed)
        dense, order = densify(rows, schema)
        hierarchies = [schema.quasi[q].hierarchy for q in order.tolist()]
        lattice = lattice_of(dense, hierarchies, self._settings, rng)

        def form(judge: Judge) -> list[Ints]:
            return self._blocks(dense, lattice, judge, watch)

        return settled(rows, schema, form, partly=True)

    def _blocks(self, dense: Dense, lattice: Lattice, judge: Judge, watch: Watch) -> list[Ints]:
        """Divide the rows by quasi-identifiers and people alone."""
        group, count = _walk(dense, lattice, judge, watch)
        if not count:
            return []
        classes = empty_classes(group, count, dense.width)
        settle(dense, classes, count)
        place_leftovers(dense, classes, judge, count)
        if self._settings.rounds:
            index = index_of(lattice, classes, count, np.random.default_rng(self._seed))
            search = Search(dense, classes, index, judge.need)
            for _ in range(self._settings.rounds):
                improve(search, room_of(search, self._settings.near))
        watch(int((group >= 0).sum()))
        return members_of(group)


def _walk(dense: Dense, lattice: Lattice, judge: Judge, watch: Watch) -> tuple[Ints, int]:
    """Return the class of each row, `NOWHERE` for leftovers, and the number of classes."""
    n, need = len(dense.code), judge.need
    room = walk_room(n, need.rows, dense.width)
    state = room.state
    vector, end = 0, len(lattice.vectors)
    while vector < end and state[0] >= need.rows:
        vector = walk(dense, lattice, need, room, vector, min(end, vector + AT_ONCE))
        watch(n - int(state[0]))
    return room.group, int(state[1])
