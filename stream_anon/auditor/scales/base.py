"""Interpret published labels per kind of hierarchy: where one lies, what it loses, or why it is invalid."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MISSING, UNKNOWN = "(missing)", "(unknown)"
NOWHERE = math.nan
"""The place of a value that the policy refuses: no label covers it."""

NEAR = 1e-9


class Reading(NamedTuple):
    """The interpretation of a label: the places it covers, both ends included, and the range of its loss, 0 to 1."""

    low: float
    high: float
    least: float
    most: float


EXACT, OUTSIDE = "exact-value", "outside-hierarchy"
Verdict = Reading | str
"""A reading, or the code of what is wrong."""


class Absent(NamedTuple):
    """Whether missing and unknown values are values of their own."""

    missing: bool = False
    unknown: bool = False


class Scale(Protocol):
    """The interface of one attribute's hierarchy, as a reader of the output understands it."""

    def read(self, label: Any) -> Verdict:
        """Interpret a published label, or return the code of what is wrong with it."""
        ...

    def place(self, value: Any) -> float:
        """Return where a raw value lies; `NOWHERE` if it must not be published."""
        ...

    def identity(self, value: Any) -> float:
        """Return a number that is equal for values that count as one; `NOWHERE` if it must not be published."""
        ...

    def covers(self, label: Any, places: Floats) -> Bools:
        """Tell which places a label covers; none for a label that is invalid."""
        ...


class Spans(ABC):
    """The shared part of scales whose labels are ranges of places."""

    @abstractmethod
    def read(self, label: Any) -> Verdict:
        """Interpret a published label, or return the code of what is wrong with it."""

    @abstractmethod
    def place(self, value: Any) -> float:
        """Return where a raw value lies."""

    def identity(self, value: Any) -> float:
        """Return the place: values at one place are one value."""
        return self.place(value)

    def covers(self, label: Any, places: Floats) -> Bools:
        """Tell which places lie between the ends of the label."""
        reading = self.read(label)
        if isinstance(reading, str):
            return np.zeros(len(places), dtype=np.bool_)
        low, high = reading.low - self._slack(reading.low), reading.high + self._slack(reading.high)
        return np.asarray((places >= low) & (places <= high))

    def _slack(self, end: float) -> float:
        """Return how far beyond an end a place may lie because of rounding."""
        return 0.0


class IntervalScale(Spans):
    """A scale of numbers, published as `[low, high]`.

    >>> years = IntervalScale((1915, 2026), None, (5, 10), None, True, Absent())
    >>> years.read((1950, 1954)).least, years.read((1951, 1954)), years.read(1951)
    (0.036036036036036036, 'outside-hierarchy', 'exact-value')
    """

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
        if not all(isinstance(end, int | float) and math.isfinite(end) for end in label):
            return OUTSIDE
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


class PrefixScale(Spans):
    """A scale of codes that lose characters from the right.

    >>> zips = PrefixScale(5, False, Absent())
    >>> zips.read("021**"), zips.read("02***9")
    (Reading(low=2100.0, high=2199.0, least=0.4, most=0.4), 'outside-hierarchy')
    """

    def __init__(self, length: int, letters: bool, absent: Absent) -> None:
        self._length, self._absent = length, absent
        self._base = 36 if letters else 10
        self._known = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: self._base])

    def read(self, label: Any) -> Verdict:
        """Interpret the beginning of a code, masked to its length; `*` covers all of them."""
        if (plain := read_plain(label, self._absent)) is not None:
            return plain
        kept = label.rstrip("*")
        masked = self._length - len(kept)
        if len(label) != self._length or not kept or not self._known.issuperset(kept):
            return OUTSIDE
        low = int(kept, self._base) * self._base**masked
        return Reading(float(low), float(low + self._base**masked - 1), masked / self._length, masked / self._length)

    def place(self, value: Any) -> float:
        """Return the code as a number."""
        code = text(value).upper() if value is not None else ""
        if len(code) == self._length and self._known.issuperset(code):
            return float(int(code, self._base))
        return absent_place(code == "", self._absent)


def read_plain(label: Any, absent: Absent) -> Verdict | None:
    """Interpret a label that all text scales share, the root or an absence; None if it is neither."""
    if label == "*":
        return Reading(-math.inf, math.inf, 1.0, 1.0)
    extra = extra_place(label, absent)
    if extra is not None:
        return Reading(extra, extra, 0.0, 0.0)
    return None if isinstance(label, str) else EXACT


class SetScale:
    """A scale without a hierarchy: a label is the sorted list of the values in the group."""

    def __init__(self, values: Sequence[str], absent: Absent) -> None:
        labels = [*values, *([MISSING] if absent.missing else []), *([UNKNOWN] if absent.unknown else [])]
        self._places = {label: float(i) for i, label in enumerate(labels)}
        self._absent = absent

    def read(self, label: Any) -> Verdict:
        """Interpret a list of values; its loss is its share of all values, 0 for a single one."""
        if not isinstance(label, tuple | list):
            return EXACT
        if not label or not all(isinstance(value, str) and value in self._places for value in label):
            return OUTSIDE
        if list(label) != sorted(set(label)):
            return OUTSIDE
        loss = len(label) / len(self._places) if len(label) > 1 else 0.0
        places = [self._places[value] for value in label]
        return Reading(min(places), max(places), loss, loss)

    def place(self, value: Any) -> float:
        """Return the number of the value in the list."""
        return labelled(value, self._places, self._absent)

    def identity(self, value: Any) -> float:
        """Return the place: values at one place are one value."""
        return self.place(value)

    def covers(self, label: Any, places: Floats) -> Bools:
        """Tell which places are members of the label."""
        if isinstance(self.read(label), str):
            return np.zeros(len(places), dtype=np.bool_)
        return np.isin(places, [self._places[value] for value in label])


def labelled(value: Any, places: Mapping[str, float], absent: Absent) -> float:
    """Return the place of a named value; missing and unknown ones have their own if the policy says so."""
    if value is None or value == "":
        return places[MISSING] if absent.missing else NOWHERE
    known = text(value)
    if known in places and known not in (MISSING, UNKNOWN):
        return places[known]
    return places[UNKNOWN] if absent.unknown else NOWHERE


def extra_place(label: Any, absent: Absent) -> float | None:
    """Return the place, before all others, of the label of an absence that the policy allows, else None."""
    if label == MISSING and absent.missing:
        return -1.0
    return -2.0 if label == UNKNOWN and absent.unknown else None


def absent_place(missing: bool, absent: Absent) -> float:
    """Return the place of a missing or unknown value, `NOWHERE` if the policy does not allow it."""
    if missing:
        return -1.0 if absent.missing else NOWHERE
    return -2.0 if absent.unknown else NOWHERE


def text(value: Any) -> str:
    """Return the same text for one value, whichever file it was read from.

    >>> text(True), text(7), text(7.0), text("7"), text(None), text(("a",))
    ('true', '7', '7.0', '7', '', '["a"]')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple | dict) else str(value)
