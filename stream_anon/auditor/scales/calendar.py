"""Interpret published units of the calendar, in UTC, by the auditor's own count of days."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Self

from stream_anon.auditor.scales.base import EXACT, OUTSIDE, Absent, Reading, Scale, Verdict, absent_place, read_plain

_FORMS = {
    "second": re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)"),
    "minute": re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)"),
    "hour": re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d)"),
    "day": re.compile(r"(\d{4})-(\d\d)-(\d\d)"),
    "week": re.compile(r"(\d{4})-(\d\d)-(\d\d)/(\d{4})-(\d\d)-(\d\d)"),
    "month": re.compile(r"(\d{4})-(\d\d)"),
    "quarter": re.compile(r"(\d{4})-Q([1-4])"),
    "year": re.compile(r"(\d{4})"),
    "decade": re.compile(r"(\d{3}0)/(\d{3}9)"),
}
_FIXED = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


class CalendarScale(Scale):
    """A scale of instants: a label is a unit of a declared level; weeks of a month start on its days 1, 8, 15, 22, 29.

    >>> days = CalendarScale(["day", "week", "month"], 1000, Absent())
    >>> days.read("2026-03").least, days.read("2026-03-08/2026-03-14").least, days.read("2026-03-08T14")
    (0.6666666666666666, 0.3333333333333333, 'exact-value')
    """

    kind: ClassVar[str] = "calendar"

    def __init__(self, levels: Sequence[str], ticks: int, absent: Absent) -> None:
        self._levels, self._ticks, self._absent = list(levels), ticks, absent

    @classmethod
    def of(cls, attribute: dict[str, Any], absent: Absent, folder: Path) -> Self:
        """Read the scale from its attribute's entry in the policy."""
        shape = attribute["hierarchy"]
        return cls(shape["levels"], 1 if shape.get("epoch") == "seconds" else 1000, absent)

    def read(self, label: Any) -> Verdict:
        """Interpret a label as its first and last second; its loss is the level's share of all levels."""
        if (plain := read_plain(label, self._absent)) is not None:
            return plain
        for index, level in enumerate(self._levels):
            if match := _FORMS[level].fullmatch(label):
                try:
                    first, end = _unit(level, [int(part) for part in match.groups()])
                except (ValueError, OverflowError):
                    return OUTSIDE
                loss = index / len(self._levels)
                return Reading(_seconds(first), _seconds(end) - 1, loss, loss)
        return EXACT if self.instant(label) is not None else OUTSIDE

    def place(self, value: Any) -> float:
        """Return whole seconds since the year 1."""
        if value is None or value == "":
            return absent_place(True, self._absent)
        instant = self.instant(value)
        return absent_place(False, self._absent) if instant is None else _seconds(instant)

    def identity(self, value: Any) -> float:
        """Return the finest unit of an instant: instants of one such unit are one value."""
        place = self.place(value)
        if math.isnan(place) or place < 0:
            return place
        instant = _ZERO + timedelta(seconds=place)
        finest = self._levels[0]
        if finest in _FIXED:
            return place // _FIXED[finest]
        if finest == "week":
            return float((instant.year * 12 + instant.month) * 5 + (instant.day - 1) // 7)
        months = {"month": 1, "quarter": 3, "year": 12, "decade": 120}[finest]
        return float((instant.year * 12 + instant.month - 1) // months)

    def instant(self, value: Any) -> datetime | None:
        """Parse the instant of ISO 8601 text, or of a Unix time in the policy's unit."""
        try:
            if isinstance(value, str) and not (len(value) > 8 and value.isdecimal()):
                moment = datetime.fromisoformat(value)
                moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
                return moment.replace(tzinfo=None, microsecond=0)
            moment = datetime.fromtimestamp(float(value) / self._ticks, UTC)
            return moment.replace(tzinfo=None, microsecond=0)
        except (ValueError, TypeError, OverflowError, OSError):
            return None


_ZERO = datetime(1, 1, 1)


def _seconds(instant: datetime) -> float:
    return (instant - _ZERO).total_seconds() // 1


def _unit(level: str, parts: list[int]) -> tuple[datetime, datetime]:
    """Return the first instant of a unit, and the first after it."""
    if level in _FIXED:
        first = datetime(*parts)  # type: ignore[arg-type]
        return first, first + timedelta(seconds=_FIXED[level])
    year = parts[0]
    if level == "week":
        first, last = datetime(*parts[:3]), datetime(*parts[3:])  # type: ignore[arg-type]
        whole = min(first.day + 6, monthrange(first.year, first.month)[1])
        if first.day % 7 != 1 or (last.year, last.month, last.day) != (first.year, first.month, whole):
            raise ValueError
        return first, last + timedelta(days=1)
    if level == "decade":
        if parts[1] != year + 9:
            raise ValueError
        return datetime(year, 1, 1), datetime(year + 10, 1, 1)
    months = {"month": 1, "quarter": 3, "year": 12}[level]
    start = {"month": parts[-1] - 1, "quarter": 3 * parts[-1] - 3, "year": 0}[level]
    end = start + months
    return datetime(year, start + 1, 1), datetime(year + end // 12, end % 12 + 1, 1)
