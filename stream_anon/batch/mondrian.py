"""Mondrian: cut the table at medians as long as both halves have enough people; with an attribute order it is AOS."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.batch.shared.blocks import settled
from stream_anon.batch.shared.cuts import Way, divide, division_of
from stream_anon.batch.shared.dense import Dense, densify
from stream_anon.core.batch import Batch, cut
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.judge import Judge
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported, nearest
from stream_anon.grammar.fields import Settings

AT_ONCE = 20_000
"""Stretches looked at between two words to the watcher."""


class MondrianSettings(Settings):
    """Mondrian. `order` lists quasi-identifiers, most important first, and makes it AOS; without it the widest is cut.

    `strict` keeps equal values together, `relaxed` may divide them. `categories` are cut between the children of their
    common ancestor (`tree`) or at the median of the leaf order (`leaves`).
    """

    name: Literal["mondrian"] = "mondrian"
    order: list[str] = Field(default_factory=list)
    variant: Literal["strict", "relaxed"] = "strict"
    categories: Literal["tree", "leaves"] = "tree"


class Mondrian:
    """Top-down greedy partitioning (LeFevre, DeWitt and Ramakrishnan, 2006).

    A stretch of rows is cut at the lower median of one column, left the values up to it, if both halves have enough
    people; else the next column is tried; if no column can be cut it is a block. The other models judge blocks and can
    only refuse: a refused block is merged, whole, with its nearest. (In the paper a cut is allowed if both halves are
    l-diverse, too; but then where it was cut tells values.) The column of the widest normalized
    range comes first. With `order` the user's most important attribute that can be cut comes first instead (AOS, the
    attribute order strategy): what matters is kept exact, what does not pays for it. The rule for ties, equal ranges to
    the attribute named first in the policy, is chosen; the source is silent.

    >>> from stream_anon.testing.example import ages
    >>> rows, schema = ages([23, 25, 24, 61, 60, 67], k=3)
    >>> [index.tolist() for index in Mondrian(MondrianSettings())(rows, schema)]
    [[0, 1, 2], [3, 4, 5]]
    """

    settings: ClassVar[type[Settings]] = MondrianSettings
    support: ClassVar[Support] = Support()
    nanoseconds: ClassVar[float] = 0.0

    def __init__(self, settings: MondrianSettings, seed: int = 0) -> None:
        self._settings = settings

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Return the groups: of all rows or, if not even the whole table satisfies the policy, none."""
        dense, columns = densify(rows, schema)
        order = self._order(schema, columns)

        def form(judge: Judge) -> list[Ints]:
            everything = np.arange(len(rows), dtype=np.int64)
            if not judge.holds(everything):
                return []
            starts = self._cut(dense, judge, everything, order, watch)
            return cut(everything, np.sort(starts)[1:].tolist())

        return settled(rows, schema, form)

    def _order(self, schema: Schema, columns: Ints) -> Ints:
        """Return the dense columns in the order to try them: the user's order, or that of the policy."""
        names = [column.name for column in schema.quasi]
        for name in self._settings.order:
            if name not in names:
                raise Unsupported(f'order: "{name}" is no quasi-identifier of the policy; {nearest(name, names)}')
        wanted = [*dict.fromkeys(self._settings.order), *(n for n in names if n not in self._settings.order)]
        place = {int(q): i for i, q in enumerate(columns)}
        return np.array([place[names.index(name)] for name in wanted], dtype=np.int64)

    def _cut(self, dense: Dense, judge: Judge, rows: Ints, order: Ints, watch: Watch) -> Ints:
        """Cut as often as people allow, ordering the rows in place, and return the starts of the blocks."""
        settings, finished = self._settings, 0
        way = Way(order, not settings.order, settings.variant == "relaxed", settings.categories == "tree")
        division = division_of(rows, dense)
        while division.todo[0]:
            finished += divide(dense, judge.need, division, way, AT_ONCE)
            watch(finished)
        return division.done[1 : division.done[0] + 1].copy()
