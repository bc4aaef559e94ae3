"""Interpret published intervals of numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from stream_anon.auditor.scales.base import EXACT, NOWHERE, OUTSIDE, Absent, Reading, Scale, Verdict

NEAR = 1e-9


class IntervalScale(Scale):
    """A scale of numbers, published as `[low, high]`.

    >>> years = IntervalScale((1915, 2026), None, (5, 10), None, True, Absent())
    >>> years.read((1950, 1954)).least, years.read((1951, 1954)), years.read(1951)
    (0.036036036036036036, 'outside-hierarchy', 'exact-value')
    """

    kind: ClassVar[str] = "interval"
    label_type: ClassVar[Any] = tuple[int | float | None, int | float | None] | None

    def __init__(
        self,
        bounds: tuple[float, float] | None,
        scale: float | None,
        snap: Sequence[float],
        step: float | None,
        whole: bool,
        absent: Absent,
    ) -> None:
        self._bounds, self._whole, self._absent = bounds, whole, absent
        self._step = 1.0 if whole else float(step or 1.0)
        low, high = bounds or (-math.inf, math.inf)
        self._first = low if whole or bounds is None else math.floor(low / self._step + NEAR)
        self._last = high if whole or bounds is None else math.ceil(high / self._step - NEAR) - 1
        self._width = max(self._last - self._first, 1) if scale is None else scale / self._step
        self._grids = [round(grid / self._step) for grid in snap] or [1]

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy."""
        shape = attribute["hierarchy"]
        bounds = tuple(shape["range"]) if shape.get("range") else None
        grids = shape.get("snap")
        grids = () if grids in (None, "none") else grids
        return cls(bounds, shape.get("scale"), grids, shape.get("step"), attribute["type"] == "integer", absent)

    def read(self, label: Any) -> Verdict:
        """Interpret a pair of numbers on a grid; None if all are missing, a pair of None for a mixture with them."""
        if label is None:
            return Reading(math.inf, math.inf, 0.0, 0.0) if any(self._absent) else OUTSIDE
        if not isinstance(label, tuple | list):
            return EXACT
        if len(label) != 2 or any(isinstance(end, bool) for end in label):
            return OUTSIDE
        low, high = label
        if low is None and high is None:
            return Reading(-math.inf, math.inf, 1.0, 1.0) if any(self._absent) else OUTSIDE
        if not all(isinstance(end, int | float) and abs(end) <= sys.float_info.max for end in label):
            return OUTSIDE  # NaN and infinite ends, too
        if self._whole and not all(float(end).is_integer() for end in label):
            return OUTSIDE
        cells = self._cells(low, high)
        if cells is None:
            return OUTSIDE
        loss = min((cells[1] - cells[0]) / self._width, 1.0)
        return Reading(low, high, loss, loss)

    def _cells(self, low: float, high: float) -> tuple[float, float] | None:
        """Return the first and the last cell of an interval whose ends lie on one grid, or on the coarsest."""
        if self._whole:
            first, last = float(low), float(high)
        else:
            first, last = low / self._step, high / self._step - 1
            if self._bounds and low == self._bounds[0]:
                first = self._first
            if self._bounds and high == self._bounds[1]:
                last = self._last
            if abs(first - round(first)) > 1e-6 or abs(last - round(last)) > 1e-6:
                return None
            first, last = round(first), round(last)
        if not self._first <= first <= last <= self._last:
            return None
        for grid in self._grids:
            left = max(first // grid * grid, self._first)
            right = min(last // grid * grid + grid - 1, self._last)
            together = first // grid == last // grid or grid == self._grids[-1]
            if left == first and right == last and together:
                return first, last
        return None

    def place(self, value: Any) -> float:
        """Return the number itself; infinite for a value that has no place among numbers."""
        number = self._number(value)
        if number is None:
            return math.inf if self._absent.missing else NOWHERE
        if math.isnan(number) or (self._bounds and not self._bounds[0] <= number <= self._bounds[1]):
            return math.inf if self._absent.unknown else NOWHERE
        return number

    def identity(self, value: Any) -> float:
        """Return the step of the number; missing and unknown ones are two values of their own."""
        place = self.place(value)
        if math.isinf(place):
            return math.inf if self._number(value) is None else -math.inf
        return place if self._whole or math.isnan(place) else min(float(math.floor(place / self._step)), self._last)

    def _slack(self, end: float) -> float:
        """Return a small tolerance: decimal ends are binary approximations."""
        return 0.0 if self._whole or math.isinf(end) else NEAR * max(1.0, abs(end))

    def _number(self, value: Any) -> float | None:
        if value is None or value == "":
            return None
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            return math.nan
