"""Find a class for rows that the main part of an algorithm left over; a row that no class can take stays out."""

from __future__ import annotations

import numpy as np

from stream_anon.batch.shared.classes import Classes, added, empty_classes, join, join_cheapest, settle
from stream_anon.batch.shared.dense import Dense
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.judge import Judge

TRIES = 50
"""Classes tried for a row that not every class can take."""

ROUNDS = 3
"""How often a row is tried: those placed meanwhile may have made room."""

NOWHERE = -1


def members_of(group: Ints) -> list[Ints]:
    """Return the rows of each class, classes ordered by their first row."""
    return sorted(_parts(group), key=lambda part: int(part[0]))


def with_leftovers(dense: Dense, judge: Judge, found: list[Ints]) -> list[Ints]:
    """Return the given classes after adding the rows that are in none, where one can take them."""
    group = np.full(len(dense.code), NOWHERE, dtype=np.int64)
    for c, index in enumerate(found):
        group[index] = c
    if not found:
        return []
    classes = empty_classes(group, len(found), dense.width)
    settle(dense, classes, len(found))
    place_leftovers(dense, classes, judge, len(found))
    return members_of(group)


def place_leftovers(dense: Dense, classes: Classes, judge: Judge, count: int) -> None:
    """Put each leftover row into the cheapest class that can take it, if one can."""
    cost, left = np.empty(count), np.flatnonzero(classes.group < 0)
    members = {} if judge.monotone or not len(left) else dict(enumerate(_parts(classes.group)))
    for _ in range(ROUNDS):
        for row in left.tolist():
            if judge.monotone:
                join_cheapest(dense, classes, row, count)
                continue
            added(dense, classes, row, cost)
            near = np.argpartition(cost, TRIES)[:TRIES] if count > TRIES else np.arange(count)
            for c in near[np.argsort(cost[near], kind="stable")].tolist():
                union = np.append(members[c], row)
                if judge.holds(union):
                    members[c] = union
                    join(dense, classes, row, c)
                    break
        left = left[classes.group[left] < 0]


def _parts(group: Ints) -> list[Ints]:
    """Return the rows of each class, by its number."""
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if len(order) else []
