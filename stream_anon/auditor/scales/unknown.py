"""Labels of a hierarchy that the auditor does not know: taken as they are, and reported as not judged."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar, Self

from stream_anon.auditor.scales.base import Absent, Reading, Scale, Verdict

_Scalar = str | int | float | bool | None


class UnknownScale(Scale):
    """A scale of which nothing is known: any label may cover any value, at any loss."""

    label_type: ClassVar[Any] = _Scalar | tuple[_Scalar, ...]

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Return the scale, whatever the policy says of it."""
        return cls()

    def read(self, label: Any) -> Verdict:
        """Take any label for one that may cover everything."""
        return Reading(-math.inf, math.inf, 0.0, 1.0)

    def place(self, value: Any) -> float:
        """Return the same place for every value."""
        return 0.0
