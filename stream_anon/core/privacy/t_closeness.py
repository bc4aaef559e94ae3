"""t-closeness (Li et al., 2007): a group tells little more of its values than the whole does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import SLACK, SensitiveModel

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
