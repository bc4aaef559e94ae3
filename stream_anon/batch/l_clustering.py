"""L-clustering: l-diverse classes grown from random rows, without hierarchies: numbers to intervals, names to sets."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np

from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.batch.shared.sets import (
    Groups,
    Table,
    absorb,
    add_row,
    fill_costs,
    room_for,
    start_group,
    table_of,
    union_loss,
)
from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints, Tree
from stream_anon.core.kernels import compiled
from stream_anon.core.privacy import DistinctL, KAnonymity
from stream_anon.core.schema import Schema
from stream_anon.grammar.fields import Settings

AT_ONCE = 100
"""Classes made between two words to the watcher."""


class LClusteringSettings(Settings):
    """L-clustering. `measure` is the uncertainty left by an interval or a set: `entropy` (log2) or `width`.

    With `weights: range` each column counts by one over its range, with `policy` by its weight in the policy.
    """

    name: Literal["l-clustering"] = "l-clustering"
    measure: Literal["entropy", "width"] = "entropy"
    weights: Literal["policy", "range"] = "policy"


class LClustering:
    """Clusters of l different sensitive values; the work grows with the square of the rows.

    While l values remain: a random row starts a class; the class takes the nearest row whose value it has not, or, if
    one is nearer, absorbs a finished class, until it has l values. Each row that remains joins its nearest class. The
    distance between two classes is by how much the table loses more when they are one; ties go to the row.

    The uncertainty of an interval is log2 of its width + 1, of a set log2 of its size (`measure: width`: one less than
    each); the source's own formula is lost, this one is chosen. With k > l a class goes on to k people, whatever their
    values. Two rows of one person never count twice.

    >>> from stream_anon.testing.example import ages
    >>> rows, schema = ages([20, 22, 70, 71], ["flu", "cough", "flu", "ulcer"], model="l_diversity", l=2)
    >>> sorted(index.tolist() for index in LClustering(LClusteringSettings(), 1)(rows, schema))
    [[0, 1], [2, 3]]
    """

    settings: ClassVar[type[Settings]] = LClusteringSettings
    support: ClassVar[Support] = Support((KAnonymity, DistinctL), made_for=DistinctL, by_value=True, sets=True)
    nanoseconds: ClassVar[float] = 12.0

    def __init__(self, settings: LClusteringSettings, seed: int = 0) -> None:
        self._settings = settings
        self._seed = seed

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Return the groups; none if the table has fewer than l sensitive values or k people."""
        [model] = [m for m in schema.requirements.models if isinstance(m, DistinctL)]
        n, need, k = len(rows), model.l, schema.requirements.k
        values, value = np.unique(rows.sensitive[:, model.column], return_inverse=True)
        people, person = np.unique(rows.subject, return_inverse=True)
        if len(values) < need or len(people) < k:
            return []
        table = self._table(rows, schema)
        rng = np.random.default_rng(self._seed)
        single = np.empty(0, dtype=np.int64) if len(people) == n else person.astype(np.int64)
        pool = pool_of(value.astype(np.int64), single, rng.random(n), len(table.point))
        groups, group, state = room_for(table, n // need + 2), pool.group, pool.state
        while cluster(table, groups, pool, need, k, AT_ONCE):
            watch(n - int(state[0]))
        if not state[1]:
            return []
        join_nearest(table, groups, group, rng.permutation(pool.left[: state[0]]), int(state[1]))
        order = np.argsort(group, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)

    def _table(self, rows: Batch, schema: Schema) -> Table:
        ordered = [not isinstance(column.hierarchy, Tree) for column in schema.quasi]
        weights: Floats = np.array([column.weight for column in schema.quasi])
        if self._settings.weights == "range":
            extent = [
                rows.qi[:, q].max() - rows.qi[:, q].min() if number else len(np.unique(rows.qi[:, q])) - 1
                for q, number in enumerate(ordered)
            ]
            weights = 1.0 / np.maximum(np.array(extent, dtype=np.float64), 1.0)
        return table_of(rows.qi, ordered, weights, self._settings.measure == "entropy")


class Pool(NamedTuple):
    """The rows and how far the clustering is.

    `value` and `person` are those of each row, `person` empty if every row is another's; `counts` is how many rows of
    each value are left. `state` is (rows left, classes, classes ever started), `left` the rows left, `group` the class
    of each row. `draws` are the random numbers. `had` and `inside` mark the values and people of the class at hand,
    `members` are its rows, `cost` what it costs to take in each code.
    """

    value: Ints
    person: Ints
    counts: Ints
    state: Ints
    left: Ints
    group: Ints
    draws: Floats
    had: Ints
    inside: Ints
    members: Ints
    cost: Floats


def pool_of(value: Ints, person: Ints, draws: Floats, codes: int) -> Pool:
    """Return a pool in which every row is left."""
    n, counts = len(value), np.bincount(value).astype(np.int64)
    return Pool(
        value=value,
        person=person,
        counts=counts,
        state=np.array([n, 0, 0], dtype=np.int64),
        left=np.arange(n, dtype=np.int64),
        group=np.full(n, -1, dtype=np.int64),
        draws=draws,
        had=np.full(len(counts), -1, dtype=np.int64),
        inside=np.full(n, -1, dtype=np.int64),
        members=np.empty(n, dtype=np.int64),
        cost=np.empty(codes),
    )


@compiled
def nearest_row(table: Table, groups: Groups, pool: Pool, g: int, stamp: int, any_value: bool) -> tuple[int, float]:
    """Find the nearest row with a value and a person that class g has not: its place and distance; -1 if none."""
    left, value, single, had, inside = pool.left, pool.value, pool.person, pool.had, pool.inside
    cost, count = pool.cost, pool.state[0]
    fill_costs(table, groups, g, cost)
    size, before = groups.size[g], groups.size[g] * groups.loss[g]
    best, found = np.inf, -1
    for a in range(count):
        row = left[a]
        if not any_value and had[value[row]] == stamp:
            continue
        total = 0.0
        for q in range(table.code.shape[1]):
            total += cost[table.first[q] + table.code[row, q]]
            if total >= best:
                break
        if total < best and (len(single) == 0 or inside[single[row]] != stamp):
            best, found = total, a
            if (size + 1) * total <= before:
                break  # nothing is nearer than a row inside
    return found, (size + 1) * best - before


@compiled
def nearest_group(table: Table, groups: Groups, g: int, count: int, best: float) -> tuple[int, float]:
    """Find the nearest other class and its distance, if that is below `best`; else -1."""
    found, size, loss = -1, groups.size[g], groups.loss[g]
    for other in range(count):
        if groups.size[other] == 0 or other == g:
            continue
        both = size + groups.size[other]
        before = size * loss + groups.size[other] * groups.loss[other]
        limit = (best + before) / both
        total = union_loss(table, groups, g, other, limit)
        if total < limit:
            best, found = both * total - before, other
    return found, best


@compiled
def cluster(table: Table, groups: Groups, pool: Pool, need: int, k: int, limit: int) -> bool:
    """Make up to `limit` classes and tell whether there may be more to make."""
    state, left, group, members, draws = pool.state, pool.left, pool.group, pool.members, pool.draws
    value, counts, single, had, inside = pool.value, pool.counts, pool.person, pool.had, pool.inside
    for _ in range(limit):
        remain = 0
        for count in counts:
            if count > 0:
                remain += 1
        if remain < need or state[0] == 0:
            return False
        g, stamp, size, place = state[1], state[2], 0, int(draws[state[0] - 1] * state[0])
        state[1] += 1
        state[2] += 1
        absorbed = False
        while place >= 0:
            row = left[place]
            state[0] -= 1
            left[place], left[state[0]] = left[state[0]], row
            counts[value[row]] -= 1
            had[value[row]] = stamp
            if len(single):
                inside[single[row]] = stamp
            members[size] = row
            group[row] = g
            if size:
                add_row(table, groups, g, row)
            else:
                start_group(table, groups, g, row)
            size += 1
            if size >= max(need, k):
                break
            place, distance = nearest_row(table, groups, pool, g, stamp, size >= need)
            other, _ = nearest_group(table, groups, g, g, distance)
            if other >= 0:
                absorb(table, groups, other, g)  # the older number stays, so that few rows are renamed
                for a in range(size):
                    group[members[a]] = other
                state[1] -= 1
                absorbed = True
                break
        if not absorbed and size < max(need, k):  # nobody else may join, and there is no class to join
            state[1] -= 1
            for a in range(size):
                group[members[a]] = -1
                left[state[0] + a] = members[a]
                counts[value[members[a]]] += 1
            state[0] += size
            return False
    return True


@compiled
def join_nearest(table: Table, groups: Groups, group: Ints, rest: Ints, count: int) -> None:
    """Put each row, in this order, into the class where the table loses least."""
    for row in rest:
        start_group(table, groups, count, row)
        groups.loss[count] = 0.0
        near, _ = nearest_group(table, groups, count, count, np.inf)
        add_row(table, groups, near, row)
        groups.size[count] = 0
        group[row] = near
