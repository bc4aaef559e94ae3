"""Numbers that become intervals, on a declared range or an open domain, with ends that can snap to a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from stream_anon.core.hierarchy.base import CostTable, Floats, Ints, Kind, Leaves, Trouble, encode_each
from stream_anon.core.hierarchy.ladder import shared, span_loss

OPEN_LIMIT = 2**52
"""Open domains end here: beyond it neighbouring integers are one and the same JSON number to many readers."""


class Interval:
    """Numbers as positions: integers as they are, others by the cell of width `step` they fall into.

    >>> years = Interval(1915, 2026, snap=(5, 10))
    >>> years.label(1951, 1954), years.label(1951, 1958), years.label(1951, 1962)
    ([1950, 1954], [1950, 1959], [1950, 1969])
    """

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        scale: float | None = None,
        snap: Sequence[float] = (),
        step: float | None = None,
        leaves: Leaves = Leaves(),  # noqa: B008
    ) -> None:
        self._step = step
        self._extra = leaves
        self.lowest = -OPEN_LIMIT if low is None else self._cell(low)
        self.top = (OPEN_LIMIT if high is None else self._last_cell(high)) + 1
        width = max(self.top - 1 - self.lowest, 1) if scale is None else scale / (step or 1)
        self._slope = 1.0 / width
        self._units = tuple(round(grid / (step or 1)) for grid in snap) or (1,)
        self._range = None if low is None or high is None else (low, high)
        self.label = lru_cache(maxsize=4096)(self._label)  # ends repeat

    def _cell(self, value: float) -> int:
        return math.floor(value / self._step) if self._step else int(value)

    def _last_cell(self, high: float) -> int:
        """Return the cell of the upper end; an end on a border belongs to the cell below it."""
        return max(math.ceil(high / self._step - 1e-9) - 1, self.lowest) if self._step else int(high)

    def _position(self, value: Any) -> int | None:
        value = _number(value, self._step is None) if isinstance(value, str) else value
        limit = OPEN_LIMIT * (self._step or 1)
        if not -limit <= value <= limit:  # true of NaN too, and of integers too large to be a float
            return None
        if self._range is not None and not self._range[0] <= value <= self._range[1]:
            return None
        return min(self._cell(value), self.top - 1)

    def encode(self, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Positions; a number outside the range is unknown. A policy's tables name numbers by their text."""
        if self._step is None:
            try:
                codes = np.array(values, dtype=np.int64)
            except (TypeError, ValueError, OverflowError):
                return encode_each(values, self._position, self._extra, self.top)
            outside = (codes < self.lowest) | (codes >= self.top)
            if not outside.any():
                return codes, None
            leaf = self._extra.position(Trouble.UNKNOWN, self.top)
            if leaf is not None:
                return np.where(outside, leaf, codes), None
            return codes, np.where(outside, int(Trouble.UNKNOWN), 0)
        return encode_each(values, self._position, self._extra, self.top)

    def loss(self, low: Ints, high: Ints) -> Floats:
        """Width of the published interval over the width of the domain."""
        return span_loss(np.asarray(low), np.asarray(high), self._units, self._slope, self.lowest, self.top)[2]

    def _label(self, low: int, high: int) -> list[int | float | None] | None:
        """`[low, high]`; None for missing values alone, `[None, None]` for a mixture with them."""
        if high >= self.top:
            return None if low == high else [None, None]
        unit = self._units[min(shared(self._units, low, high), len(self._units) - 1)]
        left = max(low // unit * unit, self.lowest)
        right = min(high // unit * unit + unit - 1, self.top - 1)
        if self._step is None:
            return [int(left), int(right)]
        digits = max(0, 9 - math.floor(math.log10(self._step)))  # only what binary fractions added is cut off
        ends = [round(int(left) * self._step, digits), round((int(right) + 1) * self._step, digits)]
        if self._range is not None:  # a declared end is published as it was declared
            ends = [max(ends[0], self._range[0]), min(ends[1], self._range[1])]
            ends[1] = self._range[1] if int(right) == self.top - 1 else ends[1]
        return list(ends)

    def contains(self, label: Any, value: Any) -> bool:
        """Whether the number lies between the ends, both included; None covers what has no place among the numbers."""
        if label is None:
            return value is None or self._position(value) is None
        low, high = label
        if value is None:
            return low is None
        slack = 1e-9 * max(1.0, abs(value)) if self._step else 0  # decimal ends are binary approximations
        return low is None or low - slack <= value <= high + slack

    def cost_table(self) -> CostTable:
        """Return a slope, and a ladder if ends snap to grids."""
        return CostTable(
            Kind.LINEAR if self._units == (1,) else Kind.LADDER,
            units=self._units,
            levels=(0.0,) * len(self._units),
            slope=self._slope,
            lowest=self.lowest,
            highest=self.top,
        )

    def signature(self) -> str:
        """Return all settings as text."""
        return f"interval {self.lowest} {self.top} {self._slope!r} {self._units} {self._step!r} {self._extra}"


def _number(text: str, whole: bool) -> float:
    """Return the number a text names; NaN if it names none."""
    try:
        return int(text) if whole else float(text)
    except ValueError:
        return math.nan
