"""Keyed tokens in place of names: equal for one person within a period, and unrelated across periods and purposes.

The period comes from a timestamp of the record itself, never from a clock: a record that is read again after a crash
must get the same token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from stream_anon.core.fields.settings import Change, ChangeSettings, FieldUse, Materials, Refused
from stream_anon.core.hierarchy.calendar import instant_of
from stream_anon.core.keys import keyed_bytes
from stream_anon.errors import Problem, warning
from stream_anon.grammar.fields import Duration, Settings

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BYTES = 16
"""Length of a token: two people of one token, one chance in 2^128, will not be met."""


class Scope(Settings):
    """Within what a person's tokens are equal: a period of `rotate`, told by the timestamp `by`, and a `purpose`.

    Periods are counted in UTC from 1970. `epoch` is the unit of timestamps that are numbers. Fields of one purpose have
    equal tokens for equal values, in every policy of one secret; without one, the purpose is this field of this policy.
    """

    rotate: Duration | None = None
    by: str | None = None
    epoch: Literal["seconds", "milliseconds"] = "milliseconds"
    purpose: str | None = Field(default=None, min_length=1, max_length=200)


class Pseudonym(ChangeSettings):
    """A token of 32 hexadecimal digits, keyed by the policy's secret, in place of the value.

    Spellings that count as one person have one token. Without rotation a person's token is always the same and links
    all groups the person is in: on the subject that needs `stable: true`.
    """

    keyed = True

    kind: Literal["pseudonym"]
    scope: Scope = Scope()
    stable: bool = False

    def reads(self, materials: Materials) -> dict[str, str]:
        """Return the timestamp that tells the period."""
        return {self.scope.by: "timestamp"} if self.scope.by else {}

    def build(self, materials: Materials) -> Change:
        """Return the function from a name to its token."""
        key, spelling, scope = materials.keys.field, materials.spelling, self.scope
        purpose, every = materials.purpose(scope.purpose), int(scope.rotate or 0)
        ticks = 1000 if scope.epoch == "milliseconds" else 1

        def token(value: Any, beside: Sequence[Any]) -> Any:
            period = ""
            if every:
                instant = None if isinstance(beside[0], bool) else instant_of(beside[0], ticks)
                if instant is None:
                    return Refused.MISSING if beside[0] is None else Refused.WRONG_TYPE
                period = str((instant - _EPOCH) // timedelta(seconds=every))
            name = spelling(value) or ""
            return keyed_bytes(key, "pseudonym", *purpose, str(every), period, name)[:_BYTES].hex()

        return token

    def rules(self, use: FieldUse) -> Iterator[Problem]:
        """Yield half a rotation, a timestamp that is no field of its own, and an unsaid stable token of the subject."""
        rotate, by = self.scope.rotate, self.scope.by
        if rotate is not None and by is None:
            message = "a rotation needs the field of the record whose time tells the period"
            yield Problem(("scope", "rotate"), "needs-timestamp", message, 'add "by: FIELD"')
        if rotate is None and by is not None:
            yield Problem(("scope", "by"), "unused-key", "without rotate nothing depends on a time", "add rotate: 1d")
        if rotate is not None and (rotate < 1 or not float(rotate).is_integer()):
            yield Problem(("scope", "rotate"), "out-of-range", "a period is a whole number of seconds", "write 1d")
        if by is not None:
            yield from _timestamp(by, use)
        if self.stable and rotate is not None:
            yield Problem(("stable",), "either-or", "a token that rotates is not stable", "keep one of the two")
        if use.is_subject and rotate is None and not self.stable:
            message = "a token that never changes links all groups of a person"
            hint = "add scope: {rotate: 1d, by: FIELD}, or say stable: true if that is wanted"
            yield Problem((), "linking-token", message, hint)

    def warnings(self, use: FieldUse) -> Iterator[Problem]:
        """Yield a token that never changes."""
        if self.scope.rotate is None:
            message = "this token never changes: it links all groups of a person, and their boxes can be intersected"
            hint = "scope: {rotate: 1d, by: FIELD}; audit measures how many groups a token links"
            yield warning((), "linking-token", message, hint)


def _timestamp(by: str, use: FieldUse) -> Iterator[Problem]:
    path = ("scope", "by")
    if "" in by.split("."):
        yield Problem(path, "bad-name", "a part of this dotted name is empty", "write it like visit.time")
    elif by == use.name:
        yield Problem(path, "overlapping-names", "a value cannot tell its own period", "name a timestamp")
    elif any(by.startswith(name + ".") or name.startswith(by + ".") for name in use.roles):
        message = "this field lies inside an attribute, or an attribute inside it"
        yield Problem(path, "overlapping-names", message, "name a field that stands alone, or an attribute")
