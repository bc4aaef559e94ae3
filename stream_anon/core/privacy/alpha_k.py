"""(alpha, k)-anonymity: enough people, and no value more frequent among them than its alpha."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Ints
from stream_anon.core.privacy.base import SensitiveModel, excess
from stream_anon.core.privacy.counting import NEVER, CountRule
from stream_anon.core.privacy.estimates import RunningEstimate, RunningWishes
from stream_anon.core.privacy.settings import MOST, Attribute, ColumnModelSettings, Place, one_of
from stream_anon.errors import Problem
from stream_anon.grammar.fields import Share
from stream_anon.grammar.tables import ValueTable, share


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

    def certainty(self) -> float:
        """Return 0: how common a value is by itself says how sure a reader may be of it."""
        return 0.0

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

    def counted(self) -> tuple[CountRule, ...]:
        """Return the shares as a rule on counts."""
        alpha_of = self.alpha_of
        return (CountRule(self.column, share=lambda code: NEVER if (a := alpha_of(code)) is None else a),)


class AlphaKSettings(ColumnModelSettings):
    """At least k people, and no value with a share above its alpha.

    `alpha` is one share for all values, a mapping, or a CSV file; or it follows from what people ask for in the
    attribute's `psf` field: alpha = max(1 - prf, floor), from a running estimate.
    """

    model: Literal["alpha_k"]
    k: int = Field(ge=2, le=MOST)
    alpha: Share | dict[str, Share] | str | None = None
    default: Share = 1.0
    estimate: RunningEstimate | None = None
    floor: Share | None = None
    forms = (AlphaK,)

    @property
    def people(self) -> int:
        """The number of people that it asks for in a group."""
        return self.k

    @property
    def learns(self) -> bool:
        """Whether alpha follows from what people ask for."""
        return self.estimate is not None

    def rules(self, attribute: Attribute) -> Iterator[Problem]:
        """Yield what is contradictory about alpha, and an estimate without the field in which people ask."""
        yield from one_of("alpha", self.alpha, "estimate", self.estimate)
        if self.estimate is not None and attribute.psf is None:
            hint = f'add "psf: FIELD" to the attribute "{self.attribute}"'
            yield Problem(("estimate",), "missing-psf", "an estimate needs the field in which people ask", hint)
        if self.floor is not None and self.estimate is None:
            yield Problem(("floor",), "unused-key", "floor only bounds an estimate", "remove floor, or use estimate")
        elif self.floor is not None and self.floor < 1 / self.k:
            hint = f"at least {1 / self.k:.4g}"
            message = f"below 1/k no group of {self.k} could be published"
            yield Problem(("floor",), "out-of-range", message, hint)

    def read_table(self, folder: Path) -> Mapping[str, float] | None:
        """Return the table that `alpha` names, if it names one."""
        return read_alphas(folder / self.alpha, self.alpha) if isinstance(self.alpha, str) else None

    def build(self, place: Place) -> AlphaK:
        """Return the model, with a fixed alpha for each value or one that follows from an estimate."""
        if self.estimate is not None:
            wishes = RunningWishes(place.index, self.estimate.after, self.floor or 1 / self.k)
            return AlphaK(place.index, self.k, wishes, wishes.learn, wishes.known)
        named = place.codes("alpha", self.alpha)
        everywhere = self.alpha if isinstance(self.alpha, float) else self.default
        return AlphaK(place.index, self.k, lambda value: named.get(value, everywhere))


def read_alphas(path: Path, shown: str) -> dict[str, float]:
    """Return the table `value;alpha`: the largest share each value may have in a group."""
    table = ValueTable(path, shown, ("value", "alpha"))
    return {value: alpha for value, (alpha,) in table.read(share).items()}
