"""Personalized (l, c)-anonymity by clustering: classes seeded by the most sensitive values, filled by the least."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.batch.shared.classes import widen
from stream_anon.batch.shared.dense import Dense, densify
from stream_anon.batch.shared.growth import pick
from stream_anon.batch.shared.leftovers import with_leftovers
from stream_anon.batch.sweep.recut import best_cut
from stream_anon.batch.sweep.search import CutRoom
from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.counting import satisfied_by
from stream_anon.core.judging.judge import Judge
from stream_anon.core.judging.need import CompiledRequirements
from stream_anon.core.kernels import kernel
from stream_anon.core.privacy import KAnonymity, LCAnonymity
from stream_anon.core.schema import Schema
from stream_anon.grammar.fields import Settings

TRIED = 50
"""Seeds of one bucket tried before the bucket counts as one that cannot be served."""


class LCClusteringSettings(Settings):
    """Personalized (l, c)-anonymity by clustering; classes of at least twice their l are split if `split`."""

    name: Literal["lc-clustering"] = "lc-clustering"
    split: bool = True


class LCClustering:
    """Clusters in which each sensitive value sets its own l, and no value has a share above c of its class.

    1. Bucket the rows by sensitive value, the most sensitive first; among equals that of the largest l.
    2. Seed a class from the first bucket; fill it with one row from each other bucket, the least sensitive first, until
       it has as many values as the most demanding of them asks for, and 1/c of them at least; from each bucket the row
       that costs least. So a sensitive value is grouped with harmless ones. Among equals the fullest bucket comes
       first, so that none is left over; a value that asks for more values than are left is not used.
    3. Stop when the first bucket cannot be served: to skip it would leave its rows without a class.
    4. Place what is left by least added loss, wherever the class then still satisfies the policy; suppress the rest.
    5. Cut classes of at least twice their l, if both halves satisfy the policy and lose less.

    The loss is the sum of relative widths and relative heights of common subtrees; the source's formula is lost, this
    one and the rule to stop are chosen.

    >>> from stream_anon.testing.example import ages
    >>> rows, schema = ages([20, 70, 21, 71], ["flu", "ulcer", "cough", "flu"], model="lc_anonymity", c=0.5)
    >>> sorted(index.tolist() for index in LCClustering(LCClusteringSettings())(rows, schema))
    [[0, 2], [1, 3]]
    """

    settings: ClassVar[type[Settings]] = LCClusteringSettings
    support: ClassVar[Support] = Support((KAnonymity, LCAnonymity), made_for=LCAnonymity, by_value=True)
    nanoseconds: ClassVar[float] = 0.5

    def __init__(self, settings: LCClusteringSettings, seed: int = 0) -> None:
        self._settings = settings
        self._seed = seed

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Return the groups; rows that fit nowhere are in none."""
        [model] = [m for m in schema.requirements.models if isinstance(m, LCAnonymity)]
        judge = Judge(rows, schema)
        prices, _ = schema.counted("height")
        dense, _ = densify(rows, schema, prices)
        found = self._seeded(rows, model, judge, dense, watch)
        found = with_leftovers(dense, judge, found)
        return _split(dense, judge, found) if self._settings.split else found

    def _seeded(self, rows: Batch, model: LCAnonymity, judge: Judge, dense: Dense, watch: Watch) -> list[Ints]:
        people, person = np.unique(rows.subject, return_inverse=True)
        inside = np.zeros(len(people), dtype=np.int64)
        person = np.empty(0, dtype=np.int64) if len(people) == len(rows) else person.astype(np.int64)
        codes = np.unique(rows.sensitive[:, model.column]).tolist()
        demand = {code: model.demands.get(code, model.l) for code in codes}
        rng, column = np.random.default_rng(self._seed), rows.sensitive[:, model.column]
        buckets = {code: rng.permutation(np.flatnonzero(column == code)) for code in codes}
        least = max(math.ceil(1 / model.c - 1e-9), 1)

        def rank(code: int) -> tuple[float, int]:
            return model.sensitivities.get(code, 0.0), demand[code]

        found: list[Ints] = []
        failed, settled = 0, 0
        while filled := [code for code in codes if len(buckets[code])]:
            top = max(filled, key=lambda code: (*rank(code), len(buckets[code])))
            wanted = max(demand[top], least)
            seed = int(buckets[top][-1 - failed % len(buckets[top])])
            order = [code for code in filled if code != top and demand[code] <= len(filled)]
            order.sort(key=lambda code: (*rank(code), -len(buckets[code])))
            others = [(buckets[code], demand[code]) for code in order]
            members = _fill(dense, seed, others, wanted, judge.need.k, person, inside)
            if len(order) + 1 < wanted or not judge.holds(members):
                failed += 1
                if failed >= min(len(buckets[top]), TRIED) or len(order) + 1 < wanted:
                    break
                continue
            failed = 0
            for code in {int(column[row]) for row in members}:
                buckets[code] = buckets[code][~np.isin(buckets[code], members)]
            found.append(np.sort(members))
            settled += len(members)
            watch(settled)
        return found


def _fill(
    dense: Dense, seed: int, others: list[tuple[Ints, int]], wanted: int, k: int, person: Ints, inside: Ints
) -> Ints:
    """Add the cheapest row of one bucket after the other to the seed; go round again if more people are needed.

    With each bucket comes the number of values its rows ask for: `wanted` grows with those who join.
    """
    members, low, high = [seed], dense.code[seed].copy(), dense.code[seed].copy()
    if len(person):
        inside[person[seed]] = 1
    for bucket, asked in others * math.ceil(max(k, wanted) / max(len(others), 1)):
        if len(members) >= max(wanted, k):
            break
        free = np.flatnonzero(~np.isin(bucket, members)) if len(members) >= wanted else np.arange(len(bucket))
        place = pick(dense, bucket, free, low, high, person, inside)
        if place >= 0:
            row = int(bucket[place])
            members.append(row)
            wanted = max(wanted, asked)
            widen(dense, low, high, row)
            if len(person):
                inside[person[row]] = 1
    if len(person):
        inside[person[members]] = 0
    return np.array(members, dtype=np.int64)


@kernel
def _best_cut(dense: Dense, need: CompiledRequirements, room: CutRoom, start: int, stop: int) -> tuple[float, int, int]:
    """Find the best cut of the room's `rows[start:stop]`."""
    return best_cut(dense, need, room, start, stop)


def _split(dense: Dense, judge: Judge, groups: list[Ints]) -> list[Ints]:
    """Cut every group that is large enough at the place that loses least, until no cut helps."""
    done: list[Ints] = []
    todo = list(groups)
    low, high = np.empty(dense.width, dtype=np.int64), np.empty(dense.width, dtype=np.int64)
    while todo:
        index = todo.pop()
        spare, merged, losses = np.empty_like(index), np.empty_like(index), np.empty(len(index))
        q = -1
        if len(index) >= 2 * judge.need.rows and len(index) >= 4:
            _, q, code = _best_cut(dense, judge.need, CutRoom(index, spare, merged, losses, low, high), 0, len(index))
        if q < 0:
            done.append(index)
            continue
        left = dense.code[index, q] < code
        parts = [index[left], index[~left]]
        if all(satisfied_by(judge.need, part) for part in parts):
            todo += parts
        else:
            done.append(index)
    return sorted(done, key=lambda index: int(index[0]))
