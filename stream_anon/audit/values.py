"""Sensitive values as numbers that are equal where the values count as one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from stream_anon.audit.scales import Scale, text
from stream_anon.audit.trees import TreeScale

UNKNOWN_CODE = 0
"""The code of a value that its hierarchy does not know."""

_CACHED = 1_000_000


class _Codes(dict[Any, int]):
    """Value to code, each judged once; forgets all when there are too many, which changes nothing."""

    def __init__(self, column: SensitiveColumn) -> None:
        super().__init__()
        self._column = column

    def __missing__(self, value: Any) -> int:
        if len(self) >= _CACHED:
            self.clear()
        self[value] = code = self._column.code(value)
        return code


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveColumn:
    """A sensitive attribute: how its values are told apart. `raised`: a value may be published as an ancestor."""

    name: str
    scale: Scale | None
    numeric: bool
    raised: bool
    guard_field: str | None
    codes: dict[Any, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", _Codes(self))

    def code(self, value: Any) -> int:
        """The number of a value, `UNKNOWN_CODE` for one that must not be published."""
        if self.scale is None:
            return hash((self.name, _number(value) if self.numeric else text(value))) or 1
        place = self.scale.identity(value)
        if not math.isnan(place):
            return hash((self.name, place)) or 1
        if self.raised and isinstance(self.scale, TreeScale) and isinstance(value, str) and value in self.scale.spans:
            return hash((self.name, *self.scale.span(value))) or 1
        return UNKNOWN_CODE


def _number(value: Any) -> float | str:
    try:
        return float(value)
    except (TypeError, ValueError):
        return text(value)
