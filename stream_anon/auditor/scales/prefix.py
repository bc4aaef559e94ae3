"""Interpret published beginnings of codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Self

from stream_anon.auditor.scales.base import OUTSIDE, Absent, Reading, Scale, Verdict, absent_place, read_plain, text


class PrefixScale(Scale):
    """A scale of codes that lose characters from the right.

    >>> zips = PrefixScale(5, False, Absent())
    >>> zips.read("021**"), zips.read("02***9")
    (Reading(low=2100.0, high=2199.0, least=0.4, most=0.4), 'outside-hierarchy')
    """

    kind: ClassVar[str] = "prefix"

    def __init__(self, length: int, letters: bool, absent: Absent) -> None:
        self._length, self._absent = length, absent
        self._base = 36 if letters else 10
        self._known = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: self._base])

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy."""
        shape = attribute["hierarchy"]
        return cls(shape["length"], shape.get("alphabet") == "alphanumeric", absent)

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
