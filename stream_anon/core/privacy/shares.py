"""Models that bound the share of every single value: (l, c)-anonymity and (alpha, k)-anonymity, per value if wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import SLACK, SensitiveModel


class LCAnonymity(SensitiveModel):
    """At least as many values as the most demanding one present asks for, none with a share above c.

    `demands` maps a value's code to its own l, where that is more than `l`; `sensitivities` to how sensitive it is, by
    which an algorithm may order values: no verdict depends on it. `known` is how many values there are at all, if that
    is known.
    """

    name = "lc_anonymity"

    def __init__(
        self,
        column: int,
        l: int,  # noqa: E741 - the literature's name
        c: float,
        demands: Mapping[int, int] | None = None,
        known: int | None = None,
        sensitivities: Mapping[int, float] | None = None,
    ) -> None:
        super().__init__(column)
        self.l = l
        self.c = c
        self.demands = {code: max(l, demand) for code, demand in (demands or {}).items()}
        self.known = known
        self.sensitivities = dict(sensitivities or {})

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """Values still missing, and people who have a too frequent one."""
        wanted = max((self.demands.get(value, self.l) for value in values.tolist()), default=self.l)
        return max(0, wanted - len(values)) + excess(counts, np.full(len(counts), self.c), people)

    def impossible(self, rows: Batch) -> npt.NDArray[np.bool_]:
        """Rows whose value asks for more different values than there are."""
        most = self.known if self.known is not None else np.inf
        codes = rows.sensitive[:, self.column].tolist()
        return np.array([self.demands.get(code, self.l) > most for code in codes], dtype=np.bool_)


class AlphaK(SensitiveModel):
    """At least k people, and each value's share is at most its alpha.

    `alpha_of` gives the bound of a value's code, or None as long as it is not known: then nothing may be published.
    """

    name = "alpha_k"

    def __init__(
        self,
        column: int,
        k: int,
        alpha_of: Callable[[int], float | None],
        learn: Callable[[Batch], None] | None = None,
        ready: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(column)
        self.k = k
        self._ready = ready
        self.alpha_of = alpha_of
        self._learn = learn

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """People still missing, and people who have a too frequent value."""
        bounds = [self.alpha_of(value) for value in values.tolist()]
        if any(bound is None for bound in bounds):
            return float(self.k + people)
        return max(0, self.k - people) + excess(counts, np.array(bounds, dtype=np.float64), people)

    def ready(self) -> bool:
        """Whether enough is known of what people ask for."""
        return self._ready is None or self._ready()

    def observe(self, rows: Batch) -> None:
        """Learn what people ask for, if alpha follows from it."""
        if self._learn is not None:
            self._learn(self.with_value(rows))


def excess(counts: Ints, bounds: Floats, people: int) -> float:
    """People beyond the allowed share of their value, summed over the values; 0 within rounding."""
    over = counts - bounds * people
    return float(over[over > SLACK * max(people, 1)].sum())
