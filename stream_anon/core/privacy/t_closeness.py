"""t-closeness (Li et al., 2007): a group tells little more of its values than the whole does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import SLACK, SensitiveModel
from stream_anon.core.privacy.counting import EQUAL, NEVER, CountRule
from stream_anon.core.privacy.estimates import RunningDistribution, RunningEstimate
from stream_anon.core.privacy.settings import Attribute, Column, ColumnModelSettings, Place, one_of
from stream_anon.errors import Diagnostic, PolicyError, Problem
from stream_anon.grammar.fields import Number, Share
from stream_anon.grammar.tables import ValueTable, not_negative

Reference = Callable[[], tuple[Ints, Floats] | None]
"""The whole's distribution: codes in their order and their shares; None as long as it is not known."""


class TCloseness(SensitiveModel):
    """The distance between the group's distribution and the whole's is at most t.

    `equal` distance is half the sum of differences; `ordered` distance is the work of moving shares along the order of
    the reference's values. A value the reference does not know makes the distance 1.
    """

    name = "t_closeness"

    def __init__(
        self,
        column: int,
        t: float,
        reference: Reference,
        ordered: bool = False,
        learn: Callable[[Batch], None] | None = None,
    ) -> None:
        super().__init__(column)
        self.t = t
        self.ordered = ordered
        self.reference = reference
        self._learn = learn

    def distance(self, values: Ints, counts: Ints) -> float:
        """How far the group's distribution is from the whole's; 1 while that is unknown."""
        known = self.reference()
        if known is None or not len(values):
            return 1.0
        codes, whole = known
        place = {code: i for i, code in enumerate(codes.tolist())}
        group = np.zeros(len(codes))
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            if value not in place:
                return 1.0
            group[place[value]] = count
        difference = group / group.sum() - whole
        if self.ordered:
            return float(np.abs(np.cumsum(difference)[:-1]).sum() / max(len(codes) - 1, 1))
        return float(np.abs(difference).sum() / 2)

    def certainty(self) -> float:
        """Return 0: how common a value is by itself says how sure a reader may be of it."""
        return 0.0

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """By how much the distance exceeds t; as long as the whole is unknown, every group falls short."""
        if self.reference() is None:
            return 1.0
        over = self.distance(values, counts) - self.t
        return 0.0 if over <= SLACK else over

    def ready(self) -> bool:
        """Whether the whole's distribution is known."""
        return self.reference() is not None

    def impossible(self, rows: Batch) -> npt.NDArray[np.bool_]:
        """Rows with a value that a given reference does not know."""
        known = self.reference()
        if known is None or self._learn is not None or self.t >= 1:
            return super().impossible(rows)
        values = rows.sensitive[:, self.column]
        return ~np.isin(values, known[0]) & (values != self.missing if self.missing is not None else True)

    def observe(self, rows: Batch) -> None:
        """Learn the whole's distribution, if it is estimated."""
        if self._learn is not None:
            self._learn(self.with_value(rows))

    def counted(self) -> tuple[CountRule, ...] | None:
        """Return the distance as a rule on counts, if all of its values are counted.

        In the ordered distance, values that no row has lie between those that some have: the model must be asked.
        """
        known = self.reference()
        if known is None:
            return (CountRule(self.column, limit=0.0, share=lambda code: NEVER),)
        codes, shares = known
        if self.ordered:
            return None
        whole = dict(zip(codes.tolist(), shares.tolist(), strict=True))
        return (CountRule(self.column, EQUAL, limit=self.t, share=lambda code: whole.get(code, NEVER)),)


class TClosenessSettings(ColumnModelSettings):
    """The group's distribution of values is within t of the whole's, by `equal` or `ordered` distance."""

    model: Literal["t_closeness"]
    t: Share
    distance: Literal["equal", "ordered"] = "equal"
    reference: dict[str, Annotated[Number, Field(ge=0)]] | str | None = None
    estimate: RunningEstimate | None = None
    forms = (TCloseness,)

    @property
    def learns(self) -> bool:
        """Whether the whole's distribution is estimated."""
        return self.estimate is not None

    def rules(self, attribute: Attribute) -> Iterator[Problem]:
        """Yield a whole that is not known, and an order that the values do not have."""
        yield from one_of("reference", self.reference, "estimate", self.estimate)
        if isinstance(self.reference, dict) and not any(self.reference.values()):
            hint = "give at least one value a weight above 0"
            yield Problem(("reference",), "bad-value", "the reference has no value with a weight", hint)
        if self.distance == "ordered" and self.estimate and attribute.hierarchy is None:
            hint = "give the attribute a hierarchy, whose order counts, or a reference, or use distance: equal"
            yield Problem(("distance",), "no-order", f'the values of "{self.attribute}" have no order', hint)

    def read_table(self, folder: Path) -> Mapping[str, float] | None:
        """Return the table that `reference` names, if it names one."""
        return read_weights(folder / self.reference, self.reference) if isinstance(self.reference, str) else None

    def build(self, place: Place) -> TCloseness:
        """Return the model, with a fixed reference or one that is estimated."""
        ordered = self.distance == "ordered"
        if self.estimate is not None:
            running = RunningDistribution(place.index, self.estimate.after)
            return TCloseness(place.index, self.t, running, ordered, running.learn)
        known = place.codes("reference", self.reference)
        return TCloseness(place.index, self.t, _fixed(known, place.column), ordered)


def _fixed(named: Mapping[int, float], column: Column) -> Reference:
    """Return a reference distribution in the order of the hierarchy, or as it was written if there is none."""
    order: Iterable[int] = named if column.hierarchy is None else sorted(named)
    codes = np.array(list(order), dtype=np.int64)
    weights = np.array([named[code] for code in codes.tolist()], dtype=np.float64)
    weights = weights / weights.max()  # first, so that no sum overflows
    known = codes, weights / weights.sum()
    return lambda: known


def read_weights(path: Path, shown: str) -> dict[str, float]:
    """Return the table `value;weight`: a distribution, not necessarily summing to one."""
    table = ValueTable(path, shown, ("value", "weight"))
    weights = {value: weight for value, (weight,) in table.read(not_negative).items()}
    if not any(weights.values()):
        hint = "give at least one value a weight above 0"
        raise PolicyError([Diagnostic("out-of-range", "all weights are 0", shown, hint=hint)])
    return weights
