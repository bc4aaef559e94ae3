"""Guarding nodes (Xiao and Tao, 2006): nobody's value is placed under the node they guard with a chance above p."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import NO_GUARD, Batch
from stream_anon.core.hierarchy import Tree
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.hierarchy.settings import trees
from stream_anon.core.loss.sensitive import sensitive_loss
from stream_anon.core.privacy.base import SLACK, PrivacyModel, distinct
from stream_anon.core.privacy.settings import Attribute, ColumnModelSettings, Place
from stream_anon.errors import Problem
from stream_anon.grammar.fields import Share


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
        self._above: dict[int, list[int]] = {}
        self._lost = np.array([sensitive_loss(tree, node) for node in range(len(tree.labels))])

    def certainty(self) -> float:
        """Return the chance that a guard allows."""
        return self.p

    def breach(self, rows: Batch) -> Floats:
        """Return the chance for each row; 0 where nothing is guarded."""
        guards, which = np.unique(rows.guard[:, self.column], return_inverse=True)
        numbers = {subject: i for i, subject in enumerate(dict.fromkeys(rows.subject.tolist()))}
        person = np.array([numbers[subject] for subject in rows.subject.tolist()], dtype=np.int64)
        chance = np.zeros(len(guards))
        for i, guard in enumerate(guards.tolist()):
            if guard == NO_GUARD:
                continue
            largest = np.zeros(len(numbers))
            np.maximum.at(largest, person, self._overlap(rows.sensitive[:, self.column], guard))
            chance[i] = largest.sum() / len(numbers)
        return np.asarray(chance[which])

    def _overlap(self, nodes: Ints, guard: int) -> Floats:
        """Return the share of the leaves below each node that lie below the guard."""
        tree = self.tree
        first = np.maximum(tree.first[nodes], tree.first[guard])
        last = np.minimum(tree.last[nodes], tree.last[guard])
        below: Floats = np.maximum(last - first + 1, 0) / (tree.last[nodes] - tree.first[nodes] + 1)
        return below

    def shortfall(self, rows: Batch) -> float:
        """Return the sum of the chances above p."""
        over = self.breach(rows) - self.p
        return float(over[over > SLACK].sum())

    def shortfalls(self, rows: Batch, starts: Ints) -> Floats:
        """Return the same for many groups at once."""
        guard = rows.guard[:, self.column]
        guards = np.unique(guard)
        guards = guards[guards != NO_GUARD]
        if not len(guards):
            return np.zeros(len(starts) - 1)
        shares, group = (
            self._overlaps(guards)[rows.sensitive[:, self.column]],
            np.repeat(np.arange(len(starts) - 1), np.diff(starts)),
        )
        order = np.lexsort((rows.subject, group))
        person = np.ones(len(order), dtype=np.bool_)
        person[1:] = (np.diff(rows.subject[order]) != 0) | (np.diff(group[order]) != 0)
        largest = np.maximum.reduceat(shares[order], np.flatnonzero(person), axis=0)
        people = np.bincount(group[order][person])
        sums = np.add.reduceat(largest, np.concatenate([[0], np.cumsum(people)[:-1]]), axis=0)
        guarded = np.add.reduceat((guard[:, None] == guards).astype(np.int64), starts[:-1], axis=0)
        return self._shortfalls(sums / people[:, None], guarded)

    def impossible(self, rows: Batch) -> npt.NDArray[np.bool_]:
        """Rows whose guard has every leaf below it: everybody would give it away, whatever is told of them."""
        guard = rows.guard[:, self.column]
        leaves = self.tree.last[guard] - self.tree.first[guard] + 1
        return np.asarray((guard != NO_GUARD) & (leaves == self.tree.size) & (self.p < 1 - SLACK))

    def _shortfalls(self, chances: Floats, guarded: Ints) -> Floats:
        """Return the same for many groups at once: (groups, guards) chances, and the rows under each guard."""
        over = chances - self.p
        return np.asarray((np.where(over > SLACK, over, 0.0) * guarded).sum(axis=-1))

    def _overlaps(self, guards: Ints) -> Floats:
        """(nodes, guards): the share of the leaves below every node of the tree that lie below each guard."""
        nodes = np.arange(len(self.tree.labels))
        return np.stack([self._overlap(nodes, guard) for guard in guards.tolist()], axis=1)

    def gains(self, rows: Batch, candidates: Batch) -> Floats:
        """Return the gain of each candidate as a new person; each pair of value and guard is judged once."""
        column = self.column
        pairs = np.stack([candidates.sensitive[:, column], candidates.guard[:, column]], axis=1)
        pairs, which = np.unique(pairs, axis=0, return_inverse=True)
        guards = np.unique(np.concatenate([rows.guard[:, column], pairs[:, 1]]))
        guards = guards[guards != NO_GUARD]
        if not len(guards):
            return np.zeros(len(candidates))
        overlaps, people = self._overlaps(guards), distinct(rows.subject)
        sums = sum((overlaps[nodes].max(axis=0) for nodes in self._values(rows)), np.zeros(len(guards)))
        guarded = (rows.guard[:, column][:, None] == guards).sum(axis=0)
        after = self._shortfalls((sums + overlaps[pairs[:, 0]]) / (people + 1), guarded + (pairs[:, 1:] == guards))
        return np.asarray((self.shortfall(rows) - after)[which.ravel()])

    def _values(self, rows: Batch) -> list[Ints]:
        """Return the published nodes of each person."""
        nodes = rows.sensitive[:, self.column]
        return [nodes[rows.subject == subject] for subject in dict.fromkeys(rows.subject.tolist())]

    def repair(self, rows: Batch) -> Batch:
        """Raise one person's value at a time, to the ancestor that lowers the violation most per added loss.

        The values published do not depend on the order of the rows: ties go to the first value in tree order and its
        lowest ancestor; among people with equal values to the first row. Stops when all is safe or nothing helps.
        """
        if self.shortfall(rows) == 0.0:
            return rows
        guards, guarded = np.unique(rows.guard[:, self.column], return_counts=True)
        guards, guarded = guards[guards != NO_GUARD], guarded[guards != NO_GUARD]
        overlaps = self._overlaps(guards)
        nodes = rows.sensitive[:, self.column].copy()
        owned: dict[int, list[int]] = {}
        for i, subject in enumerate(rows.subject.tolist()):
            owned.setdefault(subject, []).append(i)
        if len(owned) == len(rows):
            return self._with_nodes(rows, self._raised(nodes, overlaps, guarded))
        while True:
            sums = np.sum([overlaps[nodes[index]].max(axis=0) for index in owned.values()], axis=0)
            missing = float(self._shortfalls(sums / len(owned), guarded))
            best, best_rate = None, 0.0
            for person, index, ancestor, cost in self._raises(nodes.tolist(), list(owned.values())):
                raised = nodes.copy()
                raised[index] = ancestor
                others = sums - overlaps[nodes[person]].max(axis=0)
                left = float(self._shortfalls((others + overlaps[raised[person]].max(axis=0)) / len(owned), guarded))
                rate = (missing - left) / max(cost, SLACK)
                if rate > best_rate + SLACK:
                    best, best_rate = raised, rate
            if best is None or missing <= 0.0:
                break
            nodes = best
        return self._with_nodes(rows, nodes)

    def _with_nodes(self, rows: Batch, nodes: Ints) -> Batch:
        columns = rows.sensitive.copy()
        columns[:, self.column] = nodes
        return rows.with_sensitive(columns)

    def _raised(self, nodes: Ints, overlaps: Floats, guarded: Ints) -> Ints:
        """Return the nodes that are published where everybody has one row: all raises of a round are priced at once."""
        nodes, people, lost = nodes.copy(), len(nodes), self._lost
        sums = overlaps[nodes].sum(axis=0)
        while (missing := float(self._shortfalls(sums / people, guarded))) > 0.0:
            steps = [(node, above) for node in np.unique(nodes).tolist() for above in self._ancestors(node)]
            if not steps:
                break
            now, then = np.array(steps).T
            left = self._shortfalls((sums - overlaps[now] + overlaps[then]) / people, guarded)
            rate = (missing - left) / np.maximum(lost[then] - lost[now], SLACK)
            if rate.max() <= SLACK:
                break
            best = int(np.argmax(rate >= rate.max() - SLACK))
            sums = sums - overlaps[now[best]] + overlaps[then[best]]
            nodes[int(np.argmax(nodes == now[best]))] = then[best]
        return nodes

    def _ancestors(self, node: int) -> list[int]:
        """Return the nodes above one, nearest first."""
        if node not in self._above:
            above = int(self.tree.parent[node])
            self._above[node] = [above, *self._ancestors(above)] if above >= 0 else []
        return self._above[node]

    def _raises(self, nodes: list[int], owned: list[list[int]]) -> Iterator[tuple[list[int], list[int], int, float]]:
        """Every (a person's rows, those raised, ancestor, added loss) worth trying: equal rows, or all of them.

        A person counts by their most telling row, so raising one of several equal ones would help nobody. People with
        the same values raise alike: one of them is tried.
        """
        alike: dict[tuple[int, ...], list[int]] = {}
        for index in owned:
            alike.setdefault(tuple(sorted(nodes[i] for i in index)), index)
        for values, person in sorted(alike.items()):
            for value in sorted(set(values)):
                same = [i for i in person if nodes[i] == value]
                yield from ((person, *step) for step in self._climb(same, nodes, int(self.tree.parent[value])))
            if values[0] != values[-1]:
                yield from ((person, *step) for step in self._climb(person, nodes, self._common(values)))

    def _climb(self, index: list[int], nodes: list[int], ancestor: int) -> Iterator[tuple[list[int], int, float]]:
        before = sum(sensitive_loss(self.tree, nodes[i]) for i in index)
        while ancestor >= 0:
            yield index, ancestor, len(index) * sensitive_loss(self.tree, ancestor) - before
            ancestor = int(self.tree.parent[ancestor])

    def _common(self, nodes: tuple[int, ...]) -> int:
        """Return the lowest node at or above all of the nodes; parents have larger numbers than their children."""
        low, high = min(self.tree.first[list(nodes)]), max(self.tree.last[list(nodes)])
        above = max(nodes)
        while self.tree.first[above] > low or self.tree.last[above] < high:
            above = int(self.tree.parent[above])
        return above


class GuardingNodeSettings(ColumnModelSettings):
    """Nobody's value can be placed under the node they guard with a probability above p."""

    model: Literal["guarding_node"]
    p: Share
    forms = (GuardingNode,)

    def rules(self, attribute: Attribute) -> Iterator[Problem]:
        """Yield an attribute without a tree, or without the field in which people say what they guard."""
        if attribute.guarding_node is None:
            hint = f'add "guarding_node: FIELD" to the attribute "{self.attribute}"'
            message = "no field says which node a person guards"
            yield Problem(("attribute",), "missing-guarding-node", message, hint)
        if attribute.hierarchy is None or not attribute.hierarchy.named_nodes:
            hint = f'give "{self.attribute}" a hierarchy of kind {", ".join(trees())}'
            yield Problem(("attribute",), "needs-tree", "guarding nodes are nodes of a tree", hint)

    def build(self, place: Place) -> GuardingNode:
        """Return the model for the tree of the column."""
        tree = place.column.hierarchy
        assert isinstance(tree, Tree)  # noqa: S101 - the policy's rules hold it
        return GuardingNode(place.index, tree, self.p)
