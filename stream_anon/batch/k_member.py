"""Greedy k-member clustering: one cluster after the other, each grown around the row farthest from the last."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.batch.shared.blocks import settled
from stream_anon.batch.shared.dense import Dense, densify
from stream_anon.batch.shared.growth import farthest, grow
from stream_anon.batch.shared.leftovers import with_leftovers
from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.judge import Judge
from stream_anon.core.schema import Schema
from stream_anon.grammar.fields import Settings


class KMemberSettings(Settings):
    """Settings of greedy k-member clustering."""

    name: Literal["k-member"] = "k-member"


class KMember:
    """Clusters of nearest rows (Byun, Kamra, Bertino and Li, 2007); the work grows with the square of the rows.

    Start with the row farthest from the last one; add the row that costs the cluster least until it has k people. Rows
    left when no further cluster can be made join the cluster they cost least. Other models judge finished clusters and
    can only refuse: a refused one is merged, whole, with another.

    >>> from stream_anon.testing.example import ages
    >>> rows, schema = ages([20, 70, 21, 71, 22, 99], k=3)
    >>> sorted(index.tolist() for index in KMember(KMemberSettings())(rows, schema))
    [[0, 2, 4], [1, 3, 5]]
    """

    settings: ClassVar[type[Settings]] = KMemberSettings
    support: ClassVar[Support] = Support()
    nanoseconds: ClassVar[float] = 6.0

    def __init__(self, settings: KMemberSettings, seed: int = 0) -> None:
        self._seed = seed

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Return the groups; rows that fit nowhere are in none."""
        dense, _ = densify(rows, schema)
        people, person = np.unique(rows.subject, return_inverse=True)
        whose = np.empty(0, dtype=np.int64) if len(people) == len(rows) else person.astype(np.int64)
        return settled(rows, schema, lambda judge: self._clusters(dense, judge, whose, watch), partly=True)

    def _clusters(self, dense: Dense, judge: Judge, person: Ints, watch: Watch) -> list[Ints]:
        """Divide the rows by quasi-identifiers and people alone."""
        n, k = len(dense.code), judge.need.k
        inside = np.zeros(int(person.max()) + 1 if len(person) else 0, dtype=np.int64)
        left, count = np.arange(n, dtype=np.int64), n
        last = int(np.random.default_rng(self._seed).integers(n))
        found: list[Ints] = []
        while count >= judge.need.rows:
            place = farthest(dense, left, count, last)
            last, count = int(left[place]), count - 1
            left[place], left[count] = left[count], last
            low, high = dense.code[last].copy(), dense.code[last].copy()
            if len(person):
                inside[person[last]] = 1
            end = count + 1
            count = grow(dense, left, count, k - 1, low, high, person, inside)
            members = left[count:end].copy()
            if len(person):
                inside[person[members]] = 0
            if judge.holds(members):
                found.append(np.sort(members))
            watch(n - count)
        return with_leftovers(dense, judge, found)
