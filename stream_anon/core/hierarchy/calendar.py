"""Instants that become minutes, hours, days, weeks, months, quarters, years or decades, in UTC.

Units must nest, so a month is taken as five weeks, of which the fifth has the days from the 29th on: a week is a
stretch of days inside one month, published by its first and last day.
"""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from stream_anon.core.hierarchy.base import (
    MISSING_LABEL,
    UNKNOWN_LABEL,
    CostTable,
    Floats,
    Ints,
    Kind,
    Leaves,
    encode_each,
)
from stream_anon.core.hierarchy.ladder import ladder_loss, shared
from stream_anon.core.hierarchy.settings import HierarchySettings
from stream_anon.errors import Problem

_DAY = 86_400
_WEEK = 7 * _DAY
_MONTH = 5 * _WEEK
SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3_600,
    "day": _DAY,
    "week": _WEEK,
    "month": _MONTH,
    "quarter": 3 * _MONTH,
    "year": 12 * _MONTH,
    "decade": 120 * _MONTH,
}
"""The units from fine to coarse, in seconds of a calendar whose months all have five weeks."""

_LENGTHS = {"second": 19, "minute": 16, "hour": 13, "day": 10}
"""How much of an instant in ISO 8601 form names each unit."""


def instant_of(value: Any, ticks: int) -> datetime | None:
    """Return the instant that ISO 8601 text or a Unix time of so many ticks a second means, None if it means none."""
    try:
        if isinstance(value, str):
            number = len(value) > 8 and value.isascii() and value.isdigit()  # 20260308 is a date
            value = int(value) if number else datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        if not math.isfinite(value):
            return None
        return datetime.fromtimestamp(value / ticks, UTC)
    except (OverflowError, ValueError, OSError, TypeError):
        return None


class Calendar:
    """Instants as positions in units of the finest level; each level up costs one of as many equal steps.

    >>> stays = Calendar(["hour", "day", "week", "month"])
    >>> codes, _ = stays.encode(["2026-03-08T14:05:00Z", "2026-03-09"])
    >>> stays.label(codes[0], codes[0]), stays.label(codes[0], codes[1])
    ('2026-03-08T14', '2026-03-08/2026-03-14')
    """

    def __init__(
        self,
        levels: Sequence[str],
        ticks_per_second: int = 1000,
        leaves: Leaves = Leaves(),  # noqa: B008
    ) -> None:
        self._names = tuple(levels)
        self._ticks = ticks_per_second
        self._extra = leaves
        self._finest = SECONDS[self._names[0]]
        self._units = tuple(SECONDS[name] // self._finest for name in self._names)
        self._levels = tuple(i / len(self._names) for i in range(len(self._names)))
        self.top = 10_000 * SECONDS["year"] // self._finest
        self.label = lru_cache(maxsize=4096)(self._label)  # units repeat

    def _position(self, value: Any) -> int | None:
        instant = instant_of(value, self._ticks)
        if instant is None:
            return None
        day = instant.day - 1
        within = (day // 7) * _WEEK + (day % 7) * _DAY + instant.hour * 3600 + instant.minute * 60 + instant.second
        return ((instant.year * 12 + instant.month - 1) * _MONTH + within) // self._finest

    def encode(self, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Positions; text is an ISO 8601 date or instant, in UTC unless it says otherwise, and a number a Unix time.

        Text of more than eight digits is a number too, as in a CSV file.
        """
        return encode_each(values, self._position, self._extra, self.top)

    def loss(self, low: Ints, high: Ints) -> Floats:
        """Return the level both ends share, as a share of all levels."""
        return ladder_loss(np.asarray(low), np.asarray(high), self._units, self._levels, self.top)

    def _label(self, low: int, high: int) -> str:
        """Return the unit both ends share, in ISO 8601's words; `*` if none."""
        if high >= self.top:
            return "*" if low != high else self._extra.label(low, self.top)
        level = shared(self._units, low, high)
        return "*" if level == len(self._names) else self._word(self._names[level], int(low))

    def _word(self, unit: str, code: int) -> str:
        month, within = divmod(code * self._finest, _MONTH)
        year, month = divmod(month, 12)
        if unit == "decade":
            return f"{year // 10 * 10:04d}/{year // 10 * 10 + 9:04d}"
        if unit == "quarter":
            return f"{year:04d}-Q{month // 3 + 1}"
        if unit in ("month", "year"):
            return f"{year:04d}-{month + 1:02d}" if unit == "month" else f"{year:04d}"
        week, within = divmod(within, _WEEK)
        if unit == "week":
            last = min(week * 7 + 7, monthrange(year, month + 1)[1])
            return f"{year:04d}-{month + 1:02d}-{week * 7 + 1:02d}/{year:04d}-{month + 1:02d}-{last:02d}"
        day, second = divmod(within, _DAY)
        instant = datetime(year, month + 1, week * 7 + day + 1, second // 3600, second // 60 % 60, second % 60)
        return instant.isoformat()[: _LENGTHS[unit]]

    def contains(self, label: Any, value: Any) -> bool:
        """Whether the instant falls into the unit."""
        if label == "*" or value is None or value == "":
            return bool(label == "*" or label == MISSING_LABEL)
        code = self._position(value)
        if code is None:
            return bool(label == UNKNOWN_LABEL)
        return any(self._word(name, code) == label for name in self._names)

    def cost_table(self) -> CostTable:
        """Return a ladder of the units."""
        least = (*self._levels, 1.0)[1]
        return CostTable(Kind.LADDER, units=self._units, levels=self._levels, highest=self.top, least=least)

    def signature(self) -> str:
        """Return all settings as text."""
        return f"calendar {self._names} {self._ticks} {self._extra}"


Unit = Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade"]


class CalendarHierarchy(HierarchySettings):
    """Instants that become hours, days, weeks, months ...: the first level is the finest that is ever published."""

    types = ("timestamp",)

    kind: Literal["calendar"]
    levels: list[Unit] = Field(min_length=1)
    epoch: Literal["seconds", "milliseconds"] = "milliseconds"

    def build(self, folder: Path, leaves: Leaves) -> Calendar:
        """Return the calendar of these levels."""
        return Calendar(self.levels, 1000 if self.epoch == "milliseconds" else 1, leaves)

    def rules(self, type_: str) -> Iterator[Problem]:
        """Yield levels that do not go from fine to coarse."""
        order = list(SECONDS)
        for index, (finer, coarser) in enumerate(pairwise(self.levels), start=1):
            if order.index(coarser) <= order.index(finer):
                hint = f"in this order: {', '.join(order)}"
                yield Problem(("levels", index), "not-increasing", "levels go from fine to coarse", hint)
