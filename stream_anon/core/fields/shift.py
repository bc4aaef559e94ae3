"""Move dates by some days that only the secret tells: the same for all dates of a person, so that intervals stay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from stream_anon.core.fields.settings import Change, ChangeSettings, FieldUse, Holds, Materials, Refused
from stream_anon.core.hierarchy.calendar import instant_of
from stream_anon.core.keys import keyed_bytes
from stream_anon.errors import Problem

_DAY = 86_400
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(.{0,30})", re.ASCII | re.DOTALL)


class Shift(ChangeSettings):
    """A date or timestamp is moved by 1 to `days` days, back or forth, the same for all of a person's.

    Text is an ISO 8601 date or instant and keeps its form and its time of day; a number is a Unix time in the unit of
    `epoch`.
    """

    keyed = True

    kind: Literal["shift"]
    days: int = Field(ge=1, le=36_500)
    epoch: Literal["seconds", "milliseconds"] = "milliseconds"

    @property
    def holds(self) -> Holds:
        """A timestamp stays what it was, text or a number."""
        return "scalar"

    def reads(self, materials: Materials) -> dict[str, str]:
        """Return the field that names the person."""
        return {materials.subject: "identifier"} if materials.subject else {}

    def build(self, materials: Materials) -> Change:
        """Return the function from a date and a person to another date."""
        key, naming, days = materials.keys.field, materials.naming, self.days
        ticks = 1000 if self.epoch == "milliseconds" else 1

        def shift(value: Any, beside: Sequence[Any]) -> Any:
            person = naming(beside[0])
            if person is None:
                return Refused.MISSING
            drawn = int.from_bytes(keyed_bytes(key, "shift", person)[:16], "big") % (2 * days)
            return _moved(value, drawn - days if drawn < days else drawn - days + 1, ticks)

        return shift

    def rules(self, use: FieldUse) -> Iterator[Problem]:
        """Yield a policy that does not say whose dates are moved alike, and a person's name that would be moved."""
        if use.subject is None:
            message = "a shift is that of a person, and no subject is named"
            yield Problem((), "needs-subject", message, "add subject: ...")
        if use.is_subject:
            yield Problem((), "publish-and-role", "the subject is a name, not a date", "publish: pseudonym")


def _moved(value: Any, days: int, ticks: int) -> Any:
    """Return the value moved by some days, in the form it came in."""
    if isinstance(value, bool):
        return Refused.WRONG_TYPE
    if isinstance(value, str) and not (len(value) > 8 and value.isascii() and value.isdigit()):
        match = _DATE.fullmatch(value)
        if match is None:
            return Refused.WRONG_TYPE
        datetime.fromisoformat(value)
        return (date.fromisoformat(match[1]) + timedelta(days=days)).isoformat() + match[2]
    number = int(value) if isinstance(value, str) and len(value) < 20 else value
    moved = number + days * _DAY * ticks
    if instant_of(number, ticks) is None or instant_of(moved, ticks) is None:
        return Refused.WRONG_TYPE
    return str(moved) if isinstance(value, str) else moved
