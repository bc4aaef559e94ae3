"""l-diversity in its three forms (Machanavajjhala et al., 2006)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.base import SLACK, PrivacyModel, SensitiveModel, distinct_each
from stream_anon.core.privacy.counting import ENTROPY, RECURSIVE, CountRule
from stream_anon.core.privacy.settings import MOST, Attribute, Column, ColumnModelSettings, Place, more_than_values
from stream_anon.errors import Problem
from stream_anon.grammar.fields import Number


class DistinctL(SensitiveModel):
    """At least l different values."""

    name = "l_diversity"
    words = "l_diversity (distinct)"
    monotone = True

    def __init__(self, column: int, l: int) -> None:  # noqa: E741 - the literature's name
        super().__init__(column)
        self.l = l

    @property
    def people(self) -> int:
        """The number of values, for few people have several."""
        return max(self.k, self.l)

    def certainty(self) -> float:
        """Return the share of each of l equally frequent values."""
        return 1.0 / self.l

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """Return the number of values still missing."""
        return float(max(0, self.l - len(values)))

    def shortfalls(self, rows: Batch, starts: Ints) -> Floats:
        """Return the number of values still missing in each group."""
        values = rows.sensitive[:, self.column]
        found = distinct_each(values, starts)
        if self.missing is not None:
            found = found - np.logical_or.reduceat(values == self.missing, starts[:-1])
        return np.maximum(0.0, self.l - found)

    def counted(self) -> tuple[CountRule, ...]:
        """Return the number of different values as a rule on counts."""
        return (CountRule(self.column, least=self.l),)


class EntropyL(SensitiveModel):
    """The entropy of the values is at least that of l equally frequent ones; l need not be a whole number."""

    name = "l_diversity"
    words = "l_diversity (entropy)"

    def __init__(self, column: int, l: float) -> None:  # noqa: E741
        super().__init__(column)
        self.l = l

    @property
    def people(self) -> int:
        """The number of values, for few people have several."""
        return max(self.k, math.ceil(self.l))

    def certainty(self) -> float:
        """Return the share of each of l equally frequent values."""
        return 1.0 / self.l

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """How many equally frequent values the group falls short of l."""
        share = counts / max(counts.sum(), 1)
        entropy = float(-(share * np.log(np.maximum(share, SLACK))).sum())
        return 0.0 if entropy >= math.log(self.l) - SLACK else self.l - math.exp(entropy)

    def counted(self) -> tuple[CountRule, ...]:
        """Return the entropy of the values as a rule on counts."""
        return (CountRule(self.column, ENTROPY, math.ceil(self.l), self.l),)


class RecursiveL(SensitiveModel):
    """Recursive (c, l): the most frequent value is rarer than c times all from the l-th most frequent on."""

    name = "l_diversity"
    words = "l_diversity (recursive)"

    def __init__(self, column: int, l: int, c: float) -> None:  # noqa: E741
        super().__init__(column)
        self.l = l
        self.c = c

    @property
    def people(self) -> int:
        """The number of values, for few people have several."""
        return max(self.k, self.l)

    def certainty(self) -> float:
        """Return the share of each of l equally frequent values."""
        return 1.0 / self.l

    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """By how many people the most frequent value is too frequent, one more for the strict comparison."""
        ordered = np.sort(counts)[::-1]
        excess = float(ordered[:1].sum() - self.c * ordered[self.l - 1 :].sum())
        return 0.0 if len(values) and excess < -SLACK else max(excess, 0.0) + 1.0

    def counted(self) -> tuple[CountRule, ...]:
        """Return recursive (c, l) as a rule on counts."""
        return (CountRule(self.column, RECURSIVE, self.l, self.c),)


class LDiversitySettings(ColumnModelSettings):
    """At least l well-represented values: counted (`distinct`), by `entropy`, or `recursive` (c, l).

    By entropy, l may lie between whole numbers.
    """

    model: Literal["l_diversity"]
    l: Annotated[int | Number, Field(gt=1, le=MOST)]  # noqa: E741 - the literature's name
    variant: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Annotated[Number, Field(gt=0)] | None = None
    forms = (DistinctL, EntropyL, RecursiveL)

    def rules(self, attribute: Attribute) -> Iterator[Problem]:
        """Yield an l that is no whole number, and a c that is missing, or given where the variant has none."""
        if self.variant != "entropy" and self.l != int(self.l):
            hint = f"{math.ceil(self.l)}, or say variant: entropy"
            yield Problem(("l",), "not-whole", f"the {self.variant} variant counts values: l is a whole number", hint)
        if self.variant == "recursive" and self.c is None:
            yield Problem(("c",), "missing-key", "the recursive variant needs c", 'add "c: ..."')
        if self.variant != "recursive" and self.c is not None:
            hint = "remove c, or say variant: recursive"
            yield Problem(("c",), "unused-key", f"the {self.variant} variant has no c", hint)

    def build(self, place: Place) -> PrivacyModel:
        """Return the model of the chosen variant."""
        if self.variant == "distinct":
            return DistinctL(place.index, int(self.l))
        if self.variant == "entropy":
            return EntropyL(place.index, self.l)
        return RecursiveL(place.index, int(self.l), self.c or 1.0)

    def warnings(self, model: PrivacyModel, column: Column) -> Iterator[Problem]:
        """Yield an l that no group can have."""
        yield from more_than_values(math.ceil(self.l), column)
