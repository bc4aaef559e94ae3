"""Round numbers to a step, and put the end itself for all that are above or below an end (top and bottom coding)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Field

from stream_anon.core.fields.settings import Change, ChangeSettings, FieldUse, Holds, Materials, Refused
from stream_anon.errors import Problem
from stream_anon.grammar.fields import Number

_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)
_EXACT = 2**52
"""Steps from 0 beyond which a float does not tell neighbours apart."""


class Round(ChangeSettings):
    """A number becomes the nearest multiple of `step`; beyond `bottom` or `top` it becomes that end.

    Text that is a decimal number is one.
    """

    roles = ("identifier", "insensitive", "sensitive")

    kind: Literal["round"]
    step: Annotated[Number, Field(gt=0)] | None = None
    bottom: Number | None = None
    top: Number | None = None

    @property
    def holds(self) -> Holds:
        """Whole numbers, if step and ends are whole."""
        given = [number for number in (self.step, self.bottom, self.top) if number is not None]
        return "whole" if self.step is not None and all(number.is_integer() for number in given) else "real"

    def build(self, materials: Materials) -> Change:
        """Return the function from a number to its rounded one."""
        return self._rounded

    def _rounded(self, value: Any, beside: Sequence[Any]) -> Any:
        number = _number(value)
        if number is None:
            return Refused.WRONG_TYPE
        number = self._within(number)
        if self.step is not None:
            if abs(number) > _EXACT * self.step:
                return Refused.WRONG_TYPE
            step = Fraction(str(self.step))  # as it is written: 0.15 lies half-way between 0.1 and 0.2
            number = self._within(float(math.floor(Fraction(str(number)) / step + Fraction(1, 2)) * step))
        if not math.isfinite(number):
            return Refused.WRONG_TYPE
        return int(number) if self.holds == "whole" else float(number)

    def _within(self, number: float) -> float:
        number = number if self.bottom is None else max(number, self.bottom)
        return number if self.top is None else min(number, self.top)

    def rules(self, use: FieldUse) -> Iterator[Problem]:
        """Yield settings that change nothing, ends in the wrong order and types without numbers."""
        if self.step is None and self.bottom is None and self.top is None:
            yield Problem(("step",), "missing-key", "nothing says how numbers are rounded", 'add "step: 10"')
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            yield Problem(("top",), "not-increasing", "the top must be above the bottom", "swap them")
        if use.type not in (None, "integer", "number"):
            message = f"the type of this attribute is {use.type}, and only numbers can be rounded"
            yield Problem((), "publish-and-type", message, "say type: number")
        if use.type == "integer" and self.holds != "whole":
            yield Problem((), "publish-and-type", "integers are rounded to whole numbers", "use whole ends and a step")


def _number(value: Any) -> float | None:
    """Return the finite number that a value is, or names; None for anything else."""
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return value
