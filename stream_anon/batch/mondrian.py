"""Mondrian: cut the table at medians as long as both halves satisfy the policy; with an attribute order it is AOS."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.batch.shared.cuts import NO_CUT, Way, cut, divide, division_of, rank
from stream_anon.batch.shared.dense import Dense, densify
from stream_anon.core.batch import Batch
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

    A stretch of rows is cut at the lower median of one column, left the values up to it, if both halves satisfy the
    policy; else the next column is tried; if no column can be cut it is a group. The column of the widest normalized
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
        judge = Judge(rows, schema)
        everything = np.arange(len(rows), dtype=np.int64)
        if not judge.holds(everything):
            return []
        dense, columns = densify(rows, schema)
        order = self._order(schema, columns)
        starts = self._counted(dense, judge, everything, order, watch)
        if not judge.counted:
            starts = self._asked(dense, judge, everything, order, watch)
        return [np.sort(part) for part in np.split(everything, np.sort(starts)[1:])]

    def _order(self, schema: Schema, columns: Ints) -> Ints:
        """Return the dense columns in the order to try them: the user's order, or that of the policy."""
        names = [column.name for column in schema.quasi]
        for name in self._settings.order:
            if name not in names:
                raise Unsupported(f'order: "{name}" is no quasi-identifier of the policy; {nearest(name, names)}')
        wanted = [*dict.fromkeys(self._settings.order), *(n for n in names if n not in self._settings.order)]
        place = {int(q): i for i, q in enumerate(columns)}
        return np.array([place[names.index(name)] for name in wanted], dtype=np.int64)

    def _counted(self, dense: Dense, judge: Judge, rows: Ints, order: Ints, watch: Watch) -> Ints:
        """Cut with compiled loops, which order the rows in place, and return the starts of the groups."""
        if not judge.counted:
            return np.zeros(1, dtype=np.int64)
        settings, settled = self._settings, 0
        way = Way(order, not settings.order, settings.variant == "relaxed", settings.categories == "tree")
        division = division_of(rows)
        while division.todo[0]:
            settled += divide(dense, judge.need, division, way, AT_ONCE)
            watch(settled)
        return division.done[1 : division.done[0] + 1].copy()

    def _asked(self, dense: Dense, judge: Judge, rows: Ints, order: Ints, watch: Watch) -> Ints:
        """Cut one group at a time, for policies with models that only the privacy models can judge."""
        settings, spare, extent = self._settings, np.empty_like(rows), np.zeros(dense.width)
        stack, starts, settled = [(0, len(rows))], [], 0
        while stack:
            start, stop = stack.pop()
            border, wanted = NO_CUT, order.copy()
            if stop - start >= 2 * judge.need.rows and not settings.order:
                rank(dense, rows, start, stop, wanted, extent)
            for q in wanted.tolist() if stop - start >= 2 * judge.need.rows else ():
                kept = rows[start:stop].copy()
                relaxed, by_tree = settings.variant == "relaxed", settings.categories == "tree"
                border = cut(dense, rows, start, stop, q, relaxed, by_tree, spare)
                if border != NO_CUT and judge.holds(rows[start:border]) and judge.holds(rows[border:stop]):
                    stack += [(border, stop), (start, border)]
                    break
                rows[start:stop], border = kept, NO_CUT
            if border == NO_CUT:
                starts.append(start)
                settled += stop - start
                watch(settled)
        return np.array(starts, dtype=np.int64)
