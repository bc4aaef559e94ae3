"""Interpret published sets of values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from stream_anon.auditor.scales.base import (
    EXACT,
    MISSING,
    OUTSIDE,
    UNKNOWN,
    Absent,
    Bools,
    Floats,
    Reading,
    Scale,
    Verdict,
    labelled,
)


class SetScale(Scale):
    """A scale without a hierarchy: a label is the sorted list of the values in the group."""

    kind: ClassVar[str] = "set"
    label_type: ClassVar[Any] = tuple[str, ...]

    def __init__(self, values: Sequence[str], absent: Absent) -> None:
        labels = [*values, *([MISSING] if absent.missing else []), *([UNKNOWN] if absent.unknown else [])]
        self._places = {label: float(i) for i, label in enumerate(labels)}
        self._absent = absent

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy."""
        return cls(attribute["hierarchy"]["values"], absent)

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

    def covers(self, label: Any, places: Floats) -> Bools:
        """Tell which places are members of the label."""
        if isinstance(self.read(label), str):
            return np.zeros(len(places), dtype=np.bool_)
        return np.isin(places, [self._places[value] for value in label])
