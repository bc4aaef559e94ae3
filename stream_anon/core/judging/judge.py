"""Tell whether rows may be published together, as often as a search asks: by counting where that is enough."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.counting import all_satisfied, satisfied_by, satisfied_each
from stream_anon.core.judging.need import need_of
from stream_anon.core.privacy import KAnonymity, Requirements
from stream_anon.core.schema import Schema


class Judge:
    """The judge of whether rows of one table satisfy the requirements of one schema.

    `counted` means that compiled loops can decide alone; `monotone` that a group which satisfies the policy still does
    when rows join it. With `people`, nothing else is judged than whether there are so many. The gate judges every group
    again, independently.
    """

    def __init__(self, rows: Batch, schema: Schema, people: int | None = None) -> None:
        self._rows = rows
        self._requirements = schema.requirements if people is None else Requirements([KAnonymity(people)])
        models = self._requirements.models
        self.need, asked = need_of(rows, models)
        self.counted = not asked
        self.monotone = all(model.monotone for model in models)

    def holds(self, index: Ints) -> bool:
        """Tell whether these rows may be published together."""
        if not satisfied_by(self.need, np.asarray(index, dtype=np.int64)):
            return False
        return self.counted or self._requirements.holds(self._rows.take(index))

    def each(self, starts: Ints) -> npt.NDArray[np.bool_]:
        """Tell of each of the consecutive ranges of rows, from one start to the next, whether it may be published."""
        found = satisfied_each(self.need, starts)
        if not self.counted:
            found &= self._requirements.hold_each(self._rows.take(slice(0, int(starts[-1]))), starts)
        return found

    def all_hold(self, order: Ints, starts: Ints) -> bool:
        """Tell whether each of the consecutive ranges of `order`, from one start to the next, may be published."""
        if not all_satisfied(self.need, order, starts):
            return False
        return self.counted or all(
            self._requirements.holds(self._rows.take(order[a:b])) for a, b in pairwise(starts.tolist())
        )
