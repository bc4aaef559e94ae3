"""Numbers that become intervals, on a declared range or an open domain, with ends that can snap to a grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema

from stream_anon.core.hierarchy.base import CostTable, Floats, Ints, Kind, Leaves, Trouble, encode_each
from stream_anon.core.hierarchy.ladder import shared, span_loss
from stream_anon.core.hierarchy.settings import HierarchySettings
from stream_anon.errors import Problem, warning
from stream_anon.grammar.fields import Number

OPEN_LIMIT = 2**52
"""Open domains end here: beyond it neighbouring integers are one and the same JSON number to many readers."""

MAX_STEPS = 1e15
"""Positions are whole numbers of steps; beyond 2^53 (9e15) a float no longer tells neighbours apart."""

FEW_STEPS = 50
"""Up to so many, values are common enough that an end is nobody's in particular: a grade, a floor, a count."""

_CELLS = 20
"""Cells of the finer of two proposed grids: ages fall into fives."""

_WHOLE = 1e-9
"""How far a quotient of two grids may be from a whole number: 0.3 / 0.1 is not exactly 3 in binary."""


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
    """Return the number a text names; NaN if it names none. A whole one may be written with a point: 3.0.

    >>> _number("3", True), _number("3.0", True), _number("3.5", True), _number("unknown", False)
    (3, 3, nan, nan)
    """
    try:
        return int(text) if whole and text.lstrip("+-").isdigit() else _whole(float(text)) if whole else float(text)
    except ValueError:
        return math.nan


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else math.nan


def _grids(value: Any) -> Any:
    """No grids at all for the word `none`, which is said on purpose; None is nothing said."""
    if isinstance(value, str) and value != "none":
        raise ValueError('a list of grids, finest first, or "none" for exact ends')
    return [] if value == "none" else value


Grids = Annotated[
    list[Annotated[Number, Field(gt=0)]] | None,
    BeforeValidator(_grids),
    WithJsonSchema(
        {"anyOf": [{"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}}, {"enum": ["none", None]}]}
    ),
]
"""Grids from fine to coarse, an empty list where none is wanted, None where nothing was said."""


class IntervalHierarchy(HierarchySettings):
    """Numbers become intervals `[low, high]`.

    With `range`, the loss of an interval is its width over the width of the range, and a number outside is unknown.
    Without it the domain is open, and `scale` says at what width everything is lost. `snap` lists grids, finest first:
    an interval is widened to the cell of the first grid that holds it, else its ends to the coarsest grid, so that no
    end is some person's value. A quasi-identifier of more than 50 steps needs it; `snap: none` publishes exact ends.
    Numbers that are not integers are told apart only down to `step`.
    """

    types = ("integer", "number")

    kind: Literal["interval"]
    range: tuple[Number, Number] | None = Field(default=None, strict=False)
    scale: Annotated[Number, Field(gt=0)] | None = None
    snap: Grids = None
    step: Annotated[Number, Field(gt=0)] | None = None

    def build(self, folder: Path, leaves: Leaves) -> Interval:
        """Return intervals over the range, or over an open domain."""
        low, high = self.range or (None, None)
        return Interval(low, high, self.scale, self.snap or (), self.step, leaves)

    def rules(self, type_: str) -> Iterator[Problem]:
        """Yield a domain that is not one, a step that is missing or useless, and grids that do not nest."""
        if self.range is not None and self.scale is not None:
            hint = "keep range for a closed domain, scale for an open one"
            yield Problem(("scale",), "either-or", '"range" and "scale" exclude each other', hint)
        if self.range is None and self.scale is None:
            hint = 'add "range: [low, high]"'
            yield Problem(("range",), "missing-key", 'one of "range" and "scale" is needed', hint)
        if self.range is not None and self.range[0] >= self.range[1]:
            yield Problem(("range",), "not-increasing", "the range must go from low to high", "swap its ends")
        if type_ == "number" and self.step is None:
            hint = 'add "step: 0.1", the finest difference that is told apart'
            yield Problem(("step",), "missing-key", "numbers need a step", hint)
        if type_ == "integer":
            yield from self._whole_numbers()
        step = 1.0 if type_ == "integer" else self.step
        yield from _nested_grids(self.snap or [], step)
        yield from self._size(step or 1.0)

    def quasi_rules(self) -> Iterator[Problem]:
        """Yield many values without grids, where nothing says that exact ends may be published."""
        if self.snap != [] and self.exact_ends:
            message = "without a grid the ends of published intervals are somebody's exact values"
            hint = f'add "snap: {self.proposed_grids()}", or say "snap: none" if exact ends may be published'
            yield Problem(("snap",), "missing-snap", message, hint)

    def quasi_warnings(self) -> Iterator[Problem]:
        """Yield exact ends that are published on purpose."""
        if self.snap == [] and self.exact_ends:
            message = "the ends of published intervals are exact values of somebody in the group"
            yield warning(("snap",), "exact-ends", message, f"snap: {self.proposed_grids()}")

    @property
    def exact_ends(self) -> bool:
        """Whether ends of published intervals can be somebody's exact values: many steps, and no grid coarser than one.

        Few steps are a grid by themselves.
        """
        if not (self.range or self.scale):
            return False
        if self.snap and self.snap[-1] > self._unit * (1 + _WHOLE):
            return False
        return self.range is None or self._width > FEW_STEPS

    def proposed_grids(self) -> str:
        """Return two grids that divide the domain into some twenty and some four to ten cells, as a policy has them.

        >>> IntervalHierarchy(kind="interval", range=(0, 99)).proposed_grids()
        '[5, 10]'
        >>> IntervalHierarchy(kind="interval", range=(0, 9), step=0.05).proposed_grids()
        '[0.5, 2.5]'
        """
        cells = self._width / _CELLS
        power = 10 ** max(math.floor(math.log10(cells)), 0) if cells > 0 else 1
        fine = next(n * power for n in (1, 2, 5, 10) if n * power >= cells * 0.999)
        fine, coarse = (2, 10) if fine == 1 else (fine, fine * (2 if str(fine)[0] == "5" else 5))
        return "[" + ", ".join(f"{round(grid * self._unit, 12):.15g}" for grid in (fine, coarse)) + "]"

    @property
    def _unit(self) -> float:
        return self.step or 1.0

    @property
    def _width(self) -> float:
        """The domain in steps."""
        low, high = self.range or (0.0, self.scale or 0.0)
        return (high - low) / self._unit

    def _whole_numbers(self) -> Iterator[Problem]:
        if self.step is not None:
            hint = "remove step, or say type: number"
            yield Problem(("step",), "unused-key", "integers are told apart by 1", hint)
        if self.range is not None and not all(end.is_integer() for end in self.range):
            yield Problem(("range",), "bad-value", "the range of integers has whole ends", "or say type: number")

    def _size(self, step: float) -> Iterator[Problem]:
        numbers = {"range": self.range or (), "scale": (self.scale or 0.0,), "snap": self.snap or ()}
        for key, values in numbers.items():
            if any(abs(value) > MAX_STEPS * step for value in values):
                message = f"{key} is more than {MAX_STEPS:.0e} steps wide or away from 0"
                yield Problem((key,), "out-of-range", message, "use a coarser step, or smaller numbers")


def _nested_grids(snap: list[float], step: float | None) -> Iterator[Problem]:
    if snap and step is not None and not _multiple(snap[0], step):
        message = "a grid must be a multiple of the step" if step != 1 else "a grid must be a whole number"
        yield Problem(("snap", 0), "not-a-multiple", message, f"a multiple of {step:g}")
    for index, (finer, coarser) in enumerate(pairwise(snap), start=1):
        if coarser <= finer:
            yield Problem(("snap", index), "not-increasing", "grids go from fine to coarse", f"above {finer:g}")
        elif not _multiple(coarser, finer):
            hint = f"a multiple of {finer:g}"
            message = "cells of a finer grid must fit into this one"
            yield Problem(("snap", index), "not-a-multiple", message, hint)


def _multiple(coarse: float, fine: float) -> bool:
    quotient = coarse / fine
    return quotient >= 1 - _WHOLE and abs(quotient - round(quotient)) <= _WHOLE * quotient
