"""Guarding nodes in batch: group by quasi-identifiers, then raise sensitive values until no guard is breached."""

from __future__ import annotations

from typing import ClassVar, Literal

from stream_anon.batch.mondrian import Mondrian, MondrianSettings
from stream_anon.batch.partitioner import Support, Watch, unwatched
from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.privacy import GuardingNode
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
        return self._grouping(rows, schema, watch)
