"""Greedy k-member clustering: one cluster after the other, each grown around the row farthest from the last."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np

from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.batch.shared.classes import widen
from stream_anon.batch.shared.dense import Dense, densify
from stream_anon.batch.shared.growth import farthest, grow, pick
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

    Start with the row farthest from the last one; add the row that costs the cluster least until it has k people; where
    the policy asks for more than people, go on with the cheapest row that brings the cluster nearer to it. Rows left
    when no further cluster can be made join the cluster they cost least.

    >>> from stream_anon.testing.example import ages
    >>> rows, schema = ages([20, 70, 21, 71, 22, 99], k=3)
    >>> sorted(index.tolist() for index in KMember(KMemberSettings())(rows, schema))
    [[0, 2, 4], [1, 3, 5]]
    """

    settings: ClassVar[type[Settings]] = KMemberSettings
    support: ClassVar[Support] = Support(repairs=False)  # nothing is repaired as a class grows
    nanoseconds: ClassVar[float] = 6.0

    def __init__(self, settings: KMemberSettings, seed: int = 0) -> None:
        self._seed = seed

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Return the groups; rows that fit nowhere are in none."""
        judge = Judge(rows, schema)
        dense, _ = densify(rows, schema)
        n, k = len(rows), judge.need.k
        people, person = np.unique(rows.subject, return_inverse=True)
        person = np.empty(0, dtype=np.int64) if len(people) == n else person.astype(np.int64)
        inside = np.zeros(len(people), dtype=np.int64)
        left, count = np.arange(n, dtype=np.int64), n
        last = int(np.random.default_rng(self._seed).integers(n))
        found: list[Ints] = []
        while count >= judge.need.rows:
            place = farthest(dense, left, count, last)
            last, count = int(left[place]), count - 1
            left[place], left[count] = left[count], last
            box = Box(dense.code[last].copy(), dense.code[last].copy())
            if len(person):
                inside[person[last]] = 1
            end = count + 1
            count = grow(dense, left, count, k - 1, *box, person, inside)
            count = _satisfy(Cluster(rows, schema, judge, dense, left, person, inside), box, count, end)
            members = left[count:end].copy()
            if len(person):
                inside[person[members]] = 0
            if judge.holds(members):
                found.append(np.sort(members))
            watch(n - count)
        return with_leftovers(dense, judge, found)


class Box(NamedTuple):
    """The ends of a box, as codes."""

    low: Ints
    high: Ints


class Cluster(NamedTuple):
    """What a cluster grows from: `left[count:end]` are its rows, those before are free; `inside` marks its people."""

    rows: Batch
    schema: Schema
    judge: Judge
    dense: Dense
    left: Ints
    person: Ints
    inside: Ints


def _satisfy(cluster: Cluster, box: Box, count: int, end: int) -> int:
    """Add the cheapest row that helps, until the policy holds or no row helps; return how many rows are still free."""
    rows, left, person, inside = cluster.rows, cluster.left, cluster.person, cluster.inside
    members = left[count:end]
    while count and not cluster.judge.holds(members):
        gains = cluster.schema.requirements.gains(rows.take(members), rows.take(left[:count]))
        place = pick(cluster.dense, left, np.flatnonzero(gains > 0).astype(np.int64), *box, person, inside)
        if place < 0:
            break
        row = int(left[place])
        widen(cluster.dense, *box, row)
        if len(person):
            inside[person[row]] = 1
        count -= 1
        left[place], left[count] = left[count], row
        members = left[count:end]
    return count
