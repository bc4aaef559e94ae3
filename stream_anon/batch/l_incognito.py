"""Full-domain generalization: raise every value of a column to the same level; the baseline of the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, product
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.batch.shared.levels import cell_loss, levels_of
from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.judging.judge import Judge
from stream_anon.core.kernels import compiled
from stream_anon.core.schema import Schema
from stream_anon.grammar.fields import Settings

Node = tuple[int, ...]
"""A level per column of a subset."""


@dataclass(frozen=True, slots=True)
class Column:
    """The cell of each row at each level, and what each level loses on average: as a share, and in bits."""

    cells: Ints
    loss: Floats
    bits: Floats


class LIncognitoSettings(Settings):
    """Full-domain generalization. Numbers without a grid of their own are tried at widths of `widths` positions.

    The best level vector is the one that loses least as published (`ncp`), or least in bits (`entropy`).
    """

    name: Literal["l-incognito"] = "l-incognito"
    measure: Literal["ncp", "entropy"] = "ncp"
    widths: list[int] = Field(default=[1, 5, 10, 20, 40])


class LIncognito:
    """Incognito (LeFevre, DeWitt and Ramakrishnan, 2005) for any model that survives merging.

    For subsets of the quasi-identifiers of growing size, breadth first over the lattice of their level vectors: a
    vector is a candidate if all its parts survived in the smaller subsets, and one that passes passes with all above.
    The surviving vector of least loss, as published (`ncp`) or in bits (`entropy`), is taken. Rows of one person in
    several classes can break the survival of shares, so the vector taken is judged once more, the next one if it fails.

    >>> from stream_anon.testing.example import ages
    >>> rows, schema = ages([20, 21, 24, 33, 34, 36], k=3)
    >>> LIncognito(LIncognitoSettings(widths=[1, 5, 10])).node_of(rows, schema)
    (2,)
    """

    settings: ClassVar[type[Settings]] = LIncognitoSettings
    support: ClassVar[Support] = Support(repairs=False, sets=True)  # repairs do not survive merging, nor pruning
    nanoseconds: ClassVar[float] = 0.0

    def __init__(self, settings: LIncognitoSettings, seed: int = 0) -> None:
        self._settings = settings

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Return the classes of the best vector; none if not even the top of the lattice satisfies the policy."""
        node = self.node_of(rows, schema)
        if node is None:
            return []
        columns = self.columns_of(rows, schema)
        order, starts = _classes([column.cells[level] for column, level in zip(columns, node, strict=True)])
        return [np.sort(part) for part in np.split(order, starts[1:-1])]

    def columns_of(self, rows: Batch, schema: Schema) -> list[Column]:
        """Return the levels of every quasi-identifier."""
        columns = []
        for q, quasi in enumerate(schema.quasi):
            points, code = np.unique(rows.qi[:, q], return_inverse=True)
            cells, sizes = levels_of(quasi.hierarchy, points, self._settings.widths)
            loss = [float(cell_loss(quasi.hierarchy, points, row)[code].mean()) * quasi.weight for row in cells]
            bits = [float(np.log2(row)[code].mean()) * quasi.weight for row in sizes]
            columns.append(Column(cells[:, code], np.array(loss), np.array(bits)))
        return columns

    def node_of(self, rows: Batch, schema: Schema) -> Node | None:
        """Return the best vector; None if there is none."""
        judge = Judge(rows, schema)
        columns = self.columns_of(rows, schema)
        passing: dict[tuple[int, ...], set[Node]] = {(): {()}}
        for size in range(1, len(columns) + 1):
            for subset in combinations(range(len(columns)), size):
                survivors = _survivors(judge, [columns[q] for q in subset], subset, passing)
                if not survivors:
                    return None
                passing[subset] = survivors
        entropy = self._settings.measure == "entropy"

        def loss(node: Node) -> tuple[float, Node]:
            terms = [(c.bits if entropy else c.loss)[level] for c, level in zip(columns, node, strict=True)]
            return float(sum(terms)), node

        for node in sorted(passing[tuple(range(len(columns)))], key=loss):
            if _passes(judge, columns, node):
                return node
        return None


def _survivors(
    judge: Judge, columns: list[Column], subset: tuple[int, ...], passing: dict[tuple[int, ...], set[Node]]
) -> set[Node]:
    """Return the vectors of a subset that satisfy the policy; lower ones are tried first and decide those above."""
    good: set[Node] = set()
    for node in sorted(product(*[range(len(column.cells)) for column in columns]), key=sum):
        if any(_without(node, i) not in passing[_without(subset, i)] for i in range(len(node))):
            continue  # a part of it failed, so it would too
        if any(below in good for below in _below(node)) or _passes(judge, columns, node):
            good.add(node)
    return good


def _without(items: tuple[int, ...], i: int) -> tuple[int, ...]:
    return items[:i] + items[i + 1 :]


def _below(node: Node) -> Iterable[Node]:
    return ((*node[:i], level - 1, *node[i + 1 :]) for i, level in enumerate(node) if level)


def _passes(judge: Judge, columns: list[Column], node: Node) -> bool:
    return judge.all_hold(*_classes([column.cells[level] for column, level in zip(columns, node, strict=True)]))


def _classes(cells: list[Ints]) -> tuple[Ints, Ints]:
    """Return the rows sorted by class, and where each class starts and the last one ends."""
    key = np.zeros(len(cells[0]), dtype=np.int64)
    for column in cells:
        key = key * (int(column.max()) + 1) + column
        if len(key) and key.max() > 2**40:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return grouped(key)


@compiled
def grouped(key: Ints) -> tuple[Ints, Ints]:
    """Return the places of equal keys side by side, and where each run starts and the last one ends."""
    width = 64
    while width < 2 * len(key):
        width *= 2
    mask, found = width - 1, 0
    owner = np.full(width, -1, dtype=np.int64)
    number, starts = np.empty(len(key), dtype=np.int64), np.zeros(len(key) + 2, dtype=np.int64)
    for i in range(len(key)):
        slot = (((key[i] ^ key[i] >> 31) & 0x7FFFFFFF) * 0x9E3779B1 >> 15) & mask  # stays within 63 bits
        while owner[slot] >= 0 and key[owner[slot]] != key[i]:
            slot = (slot + 1) & mask
        if owner[slot] < 0:
            owner[slot] = i
            number[i] = found
            found += 1
        else:
            number[i] = number[owner[slot]]
        starts[number[i] + 2] += 1
    for c in range(found):
        starts[c + 2] += starts[c + 1]
    order = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        order[starts[number[i] + 1]] = i
        starts[number[i] + 1] += 1
    return order, starts[: found + 1].copy()
