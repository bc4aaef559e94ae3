"""Change the values of one column before they are published; whoever cannot be changed is refused, never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stream_anon.core.fields.settings import Change, ChangeSettings, Materials, Refused

SCALARS = frozenset({str, int, float, bool, type(None)})
"""Types that may be published. Anything else could carry fields that nobody declared."""


@dataclass(frozen=True, slots=True)
class Action:
    """What is done to one column. `reads` are further fields it needs; `null`: a missing value is published as null."""

    name: str
    reads: Mapping[str, str]
    null: bool
    _materials: Materials = field(repr=False)
    _change: Change = field(repr=False)

    @classmethod
    def of(cls, settings: ChangeSettings, materials: Materials, null: bool) -> Action:
        """Return the action of these settings; with `null`, missing values are for others to judge."""
        return cls(
            name=materials.name,
            reads=settings.reads(materials),
            null=null or settings.missing == "null",
            _materials=materials,
            _change=settings.build(materials),
        )

    def apply(self, columns: Mapping[str, Sequence[Any]]) -> tuple[list[Any], list[tuple[int, Refused]]]:
        """Return the values to publish, None for those that cannot be, and which these are."""
        values, refused = columns[self.name], []
        others = zip(*(columns[name] for name in self.reads), strict=True) if self.reads else [()] * len(values)
        changed: list[Any] = []
        for i, (value, beside) in enumerate(zip(values, others, strict=True)):
            made = self._one(value, beside)
            if isinstance(made, Refused):
                refused.append((i, made))
                made = None
            changed.append(made)
        return changed, refused

    def _one(self, value: Any, beside: Sequence[Any]) -> Any:
        if type(value) not in SCALARS:
            return Refused.WRONG_TYPE
        try:
            if self._materials.spelling(value) is None:
                return None if self.null else Refused.MISSING
            made = self._change(value, beside)
        except Exception:  # whatever it is: the value cannot leave, and its text must not be in a traceback
            return Refused.WRONG_TYPE
        return made if isinstance(made, Refused) or type(made) in SCALARS - {type(None)} else Refused.WRONG_TYPE
