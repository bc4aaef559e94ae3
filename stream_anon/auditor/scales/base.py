"""What the scales of all kinds share: where a published label lies, what it loses, or why it is invalid."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MISSING, UNKNOWN = "(missing)", "(unknown)"
NOWHERE = math.nan
"""The place of a value that the policy refuses: no label covers it."""


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


class Scale(ABC):
    """A hierarchy of one kind, as a reader of the output understands it.

    `kind` is its word in the policy, `label_type` the JSON type of its labels. A label covers the places from one end
    to the other, unless a subclass says otherwise.
    """

    kind: ClassVar[str]
    label_type: ClassVar[Any] = str

    @classmethod
    @abstractmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy; files it names are in the folder."""

    @abstractmethod
    def read(self, label: Any) -> Verdict:
        """Interpret a published label, or return the code of what is wrong with it."""

    @abstractmethod
    def place(self, value: Any) -> float:
        """Return where a raw value lies; `NOWHERE` if it must not be published."""

    def identity(self, value: Any) -> float:
        """Return a number that is equal for values that count as one; `NOWHERE` if it must not be published."""
        return self.place(value)

    def covers(self, label: Any, places: Floats) -> Bools:
        """Tell which places a label covers; none for a label that is invalid."""
        reading = self.read(label)
        if isinstance(reading, str):
            return np.zeros(len(places), dtype=np.bool_)
        low, high = reading.low - self._slack(reading.low), reading.high + self._slack(reading.high)
        return np.asarray((places >= low) & (places <= high))

    def _slack(self, end: float) -> float:
        """Return how far beyond an end a place may lie because of rounding."""
        return 0.0


def read_plain(label: Any, absent: Absent) -> Verdict | None:
    """Interpret a label that all text scales share, the root or an absence; None if it is neither."""
    if label == "*":
        return Reading(-math.inf, math.inf, 1.0, 1.0)
    extra = extra_place(label, absent)
    if extra is not None:
        return Reading(extra, extra, 0.0, 0.0)
    return None if isinstance(label, str) else EXACT


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
