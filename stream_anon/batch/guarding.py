"""Guarding nodes in batch: group by quasi-identifiers, then raise sensitive values until no guard is breached."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

from stream_anon.batch.mondrian import Mondrian, MondrianSettings
from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.judging.judge import Judge
from stream_anon.core.kernels import cell_prices
from stream_anon.core.privacy import GuardingNode, Requirements
from stream_anon.core.schema import Schema
from stream_anon.grammar.fields import Settings


class GuardingSettings(Settings):
    """Guarding nodes: groups by quasi-identifiers, sensitive values raised inside them."""

    name: Literal["guarding"] = "guarding"


class Guarding:
    """A greedy algorithm for personalized privacy (Xiao and Tao, 2006).

    1. Group by quasi-identifiers, under all models but the guards: strict Mondrian, for its boxes never coincide, and
       guards do not survive the merging of groups that look alike.
    2. In each group raise sensitive values, a level at a time, where that lowers the violation most per added loss.
    3. A group in which raising is not enough is merged with the one that costs least.

    >>> from stream_anon.testing.example import ages
    >>> rows, schema = ages([20, 21, 60, 61], ["flu", "ulcer", "flu", "flu"], ["lung", "", "flu", ""],
    ...                     model="guarding_node", p=0.5)
    >>> [index.tolist() for index in Guarding(GuardingSettings())(rows, schema)]
    [[0, 1], [2, 3]]
    """

    settings: ClassVar[type[Settings]] = GuardingSettings
    support: ClassVar[Support] = Support(made_for=GuardingNode)
    nanoseconds: ClassVar[float] = 0.0

    def __init__(self, settings: GuardingSettings, seed: int = 0) -> None:
        self._grouping = Mondrian(MondrianSettings(), seed)

    def __call__(self, rows: Batch, schema: Schema, watch: Watch = unwatched) -> list[Ints]:
        """Return the groups: of all rows, or none if not even all of them together can be made safe."""
        others = [model for model in schema.requirements.models if not isinstance(model, GuardingNode)]
        groups = self._grouping(rows, replace(schema, requirements=Requirements(others)))
        judge = Judge(rows, schema)
        verdict = [judge.holds(index) for index in groups]
        while not all(verdict):
            if len(groups) == 1:
                return []
            bad = verdict.index(False)
            near = _nearest(rows, schema, groups, bad)
            groups[near] = np.sort(np.concatenate([groups[near], groups[bad]]))
            verdict[near] = judge.holds(groups[near])
            del groups[bad], verdict[bad]
            watch(sum(len(index) for index, good in zip(groups, verdict, strict=True) if good))
        return groups


def _nearest(rows: Batch, schema: Schema, groups: list[Ints], one: int) -> int:
    """Return the other group that adds least to the loss when merged with this one."""
    low = np.stack([rows.qi[index].min(axis=0) for index in groups])
    high = np.stack([rows.qi[index].max(axis=0) for index in groups])
    size = np.array([len(index) for index in groups])
    prices = schema.prices

    def loss(left: Ints, right: Ints) -> Floats:
        return np.asarray(cell_prices(prices.facts, prices.values, left, right) @ prices.weight)

    merged = loss(np.minimum(low, low[one]), np.maximum(high, high[one]))
    alone = loss(low, high)
    cost = (size + size[one]) * merged - size * alone
    cost[one] = np.inf
    return int(np.argmin(cost))
