"""Guarding nodes (Xiao and Tao, 2006): nobody's value is placed under the node they guard with a chance above p."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stream_anon.core.batch import NO_GUARD, Batch
from stream_anon.core.hierarchy import Tree
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.loss.sensitive import sensitive_loss
from stream_anon.core.privacy.base import SLACK, PrivacyModel


class GuardingNode(PrivacyModel):
    """A row with a guard is safe if the chance that its person has a leaf under the guard is at most p.

    The chance is an average over the people of the group: each contributes the share of the leaves below their
    published value that lie below the guard; of a person's several rows the one with the largest share counts.
    Safety does not survive merging with another group of equal quasi-identifiers.
    """

    name = "guarding_node"

    def __init__(self, column: int, tree: Tree, p: float) -> None:
        self.column = column
        self.tree = tree
        self.p = p

    def breach(self, rows: Batch) -> Floats:
        """The chance for each row; 0 where nothing is guarded."""
        guards, which = np.unique(rows.guard[:, self.column], return_inverse=True)
        people, person = np.unique(rows.subject, return_inverse=True)
        chance = np.zeros(len(guards))
        for i, guard in enumerate(guards.tolist()):
            if guard == NO_GUARD:
                continue
            largest = np.zeros(len(people))
            np.maximum.at(largest, person, self._overlap(rows.sensitive[:, self.column], guard))
            chance[i] = largest.sum() / len(people)
        return np.asarray(chance[which])

    def _overlap(self, nodes: Ints, guard: int) -> Floats:
        """The share of the leaves below each node that lie below the guard."""
        tree = self.tree
        first = np.maximum(tree.first[nodes], tree.first[guard])
        last = np.minimum(tree.last[nodes], tree.last[guard])
        below: Floats = np.maximum(last - first + 1, 0) / (tree.last[nodes] - tree.first[nodes] + 1)
        return below

    def shortfall(self, rows: Batch) -> float:
        """The sum of the chances above p."""
        over = self.breach(rows) - self.p
        return float(over[over > SLACK].sum())

    def gains(self, rows: Batch, candidates: Batch) -> Floats:
        """The gain of each candidate; equal value and guard gain equally."""
        before = self.shortfall(rows)
        column = self.column
        pairs = np.stack([candidates.sensitive[:, column], candidates.guard[:, column]], axis=1)
        _, first, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
        gain = [before - self.shortfall(Batch.concat([rows, candidates.take([int(i)])])) for i in first]
        return np.asarray(np.array(gain)[which.ravel()])

    def repair(self, rows: Batch) -> Batch:
        """Raise one person's value at a time, to the ancestor that lowers the violation most per added loss.

        The values published do not depend on the order of the rows: ties go to the first value in tree order and its
        lowest ancestor; among people with equal values to the first row. Stops when all is safe or nothing helps.
        """
        missing = self.shortfall(rows)
        while missing > 0.0:
            best, best_left, best_rate = None, missing, 0.0
            for index, ancestor, cost in self._raises(rows):
                columns = rows.sensitive.copy()
                columns[index, self.column] = ancestor
                attempt = rows.with_sensitive(columns)
                left = self.shortfall(attempt)
                rate = (missing - left) / max(cost, SLACK)
                if rate > best_rate + SLACK:
                    best, best_left, best_rate = attempt, left, rate
            if best is None:
                break
            rows, missing = best, best_left
        return rows

    def _raises(self, rows: Batch) -> Iterator[tuple[list[int], int, float]]:
        """Every (rows, ancestor, added loss) worth trying: equal rows of one person, or all of that person's rows.

        A person counts by their most telling row, so raising one of several equal ones would help nobody. People with
        the same values raise alike: one of them is tried.
        """
        nodes = rows.sensitive[:, self.column].tolist()
        owned: dict[int, list[int]] = {}
        for i, subject in enumerate(rows.subject.tolist()):
            owned.setdefault(subject, []).append(i)
        alike: dict[tuple[int, ...], list[int]] = {}
        for index in owned.values():
            alike.setdefault(tuple(sorted(nodes[i] for i in index)), index)
        for values, index in sorted(alike.items()):
            for value in sorted(set(values)):
                yield from self._climb([i for i in index if nodes[i] == value], nodes, int(self.tree.parent[value]))
            if values[0] != values[-1]:
                yield from self._climb(index, nodes, self._common(values))

    def _climb(self, index: list[int], nodes: list[int], ancestor: int) -> Iterator[tuple[list[int], int, float]]:
        before = sum(sensitive_loss(self.tree, nodes[i]) for i in index)
        while ancestor >= 0:
            yield index, ancestor, len(index) * sensitive_loss(self.tree, ancestor) - before
            ancestor = int(self.tree.parent[ancestor])

    def _common(self, nodes: tuple[int, ...]) -> int:
        """The lowest node at or above all of the nodes; parents have larger numbers than their children."""
        low, high = min(self.tree.first[list(nodes)]), max(self.tree.last[list(nodes)])
        above = max(nodes)
        while self.tree.first[above] > low or self.tree.last[above] < high:
            above = int(self.tree.parent[above])
        return above
