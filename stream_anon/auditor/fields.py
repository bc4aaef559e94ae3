"""What the policy says is done to a field, as a reader of the output can check it: the form, and what is computable.

Kinds of other distributions are found by entry points of the group `stream_anon.auditor_fields`; what is done by a kind
that nobody knows is reported as not judged.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from stream_anon.auditor.scales.base import text
from stream_anon.auditor.values import Comparison
from stream_anon.errors import PluginError
from stream_anon.plugins import installed

REFUSED = "\0refused"
"""Stands for a raw value whose record cannot have been published."""

NO_TIME = -(2**62)
_DECIMAL = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?")
_TEXTS = 256


class FieldCheck(ABC):
    """The check of one changed field. `links`: equal values are tokens of one person, and linkage is measured.

    `computable`: nothing secret is needed to tell from a raw value what must be published.
    """

    kind: ClassVar[str]
    links: ClassVar[bool] = False
    computable: ClassVar[bool] = False

    def __init__(self, spec: dict[str, Any], nullable: bool, comparison: Comparison) -> None:
        self.spec, self._nullable, self._comparison = spec, nullable or spec.get("missing") == "null", comparison

    def fits(self, value: Any) -> bool:
        """Tell whether a published value has the form that the policy says."""
        return self._nullable if value in (None, "") else self.formed(value)

    @abstractmethod
    def formed(self, value: Any) -> bool:
        """Tell whether a published value that is there has the form."""

    def expected(self, raw: Any) -> Any:
        """Return what must be published for a raw value, None for nothing, `REFUSED` where its record cannot be."""
        return None if self._comparison.is_missing(raw) else self.computed(raw)

    def computed(self, raw: Any) -> Any:
        """Return what must be published for a raw value that is there."""
        return REFUSED


class Token(FieldCheck):
    """The check of keyed tokens: 32 hexadecimal digits."""

    kind = "pseudonym"
    links = True

    def formed(self, value: Any) -> bool:
        """Tell whether the value is a token."""
        return isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None


class Prefix(FieldCheck):
    """The check of cut hashes: as many hexadecimal digits as declared."""

    kind = "hash_prefix"
    links = True

    def formed(self, value: Any) -> bool:
        """Tell whether the value is a prefix of the declared length; a table may have made a number of it."""
        return re.fullmatch(f"[0-9a-f]{{{int(self.spec['length'])}}}", text(value)) is not None


class MaskCheck(FieldCheck):
    """The check of masks: hidden but for the declared ends, or by the declared pattern."""

    kind = "mask"
    computable = True

    def __init__(self, spec: dict[str, Any], nullable: bool, comparison: Comparison) -> None:
        super().__init__(spec, nullable, comparison)
        self._first, self._last = int(spec.get("first", 0)), int(spec.get("last", 0))
        self._fill, self._keeps = str(spec.get("fill", "***")), spec.get("unmatched") == "keep"
        self._pattern = re.compile(spec["pattern"]) if spec.get("pattern") else None

    def formed(self, value: Any) -> bool:
        """Tell whether the fill stands where something was hidden."""
        shown = text(value)
        if self._pattern is not None:
            return self._keeps or self._fill in shown
        whole = len(shown) == self._first + len(self._fill) + self._last
        return shown == self._fill or (whole and shown[self._first :].startswith(self._fill))

    def computed(self, raw: Any) -> Any:
        """Return the mask of a raw value."""
        if isinstance(raw, list | tuple | dict):
            return REFUSED
        given = text(raw)
        if self._pattern is None:
            hidden = len(given) - self._first - self._last
            return given[: self._first] + self._fill + given[self._first + hidden :] if hidden > 0 else self._fill
        if len(given) > _TEXTS:
            return REFUSED
        parts, end = [], 0
        for match in self._pattern.finditer(given):
            parts += [given[end : match.start()], self._fill]
            end = match.end()
        return "".join([*parts, given[end:]]) if parts or self._keeps else REFUSED


class RoundCheck(FieldCheck):
    """The check of rounded numbers: multiples of the step between the ends, or an end itself."""

    kind = "round"
    computable = True

    def __init__(self, spec: dict[str, Any], nullable: bool, comparison: Comparison) -> None:
        super().__init__(spec, nullable, comparison)
        self._step, self._bottom, self._top = (
            None if spec.get(key) is None else Fraction(str(spec[key])) for key in ("step", "bottom", "top")
        )
        given = [end for end in (self._step, self._bottom, self._top) if end is not None]
        self._whole = self._step is not None and all(end.denominator == 1 for end in given)

    def formed(self, value: Any) -> bool:
        """Tell whether the number is one that rounding can give."""
        number = _fraction(value)
        if number is None or number != self._within(number):
            return False
        if self._step is None or number in (self._bottom, self._top):
            return True
        steps = number / self._step
        return abs(steps - round(steps)) <= Fraction(1, 10**6)

    def computed(self, raw: Any) -> Any:
        """Return the rounded number."""
        number = _fraction(raw)
        if number is None:
            return REFUSED
        number = self._within(number)
        if self._step is not None:
            number = self._within((number / self._step + Fraction(1, 2)).__floor__() * self._step)
        return int(number) if self._whole else float(number)

    def _within(self, number: Fraction) -> Fraction:
        number = number if self._bottom is None else max(number, self._bottom)
        return number if self._top is None else min(number, self._top)


class ShiftCheck(FieldCheck):
    """The check of shifted dates: each is one; how far it was moved, only the raw table tells."""

    kind = "shift"

    @property
    def days(self) -> int:
        """The largest number of days."""
        return int(self.spec["days"])

    def formed(self, value: Any) -> bool:
        """Tell whether the value is a date or a timestamp."""
        return self.milliseconds(value) != NO_TIME

    def milliseconds(self, value: Any) -> int:
        """Return the Unix time of a value in milliseconds, `NO_TIME` for what is none."""
        try:
            if isinstance(value, bool) or value is None:
                return NO_TIME
            if isinstance(value, str) and not (len(value) > 8 and value.isdecimal()):
                moment = datetime.fromisoformat(value)
                moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
                return round(moment.timestamp() * 1000)
            scale = 1000 if self.spec.get("epoch") == "seconds" else 1
            return round(float(value) * scale)
        except (ValueError, TypeError, OverflowError):
            return NO_TIME


class RedactCheck(FieldCheck):
    """The check of redacted text: nothing in it looks like an address or a long number."""

    kind = "redact"

    def formed(self, value: Any) -> bool:
        """Tell whether the text is free of what was to be taken out and can be told without the record."""
        find, shown = self.spec.get("find", ("email", "phone")), text(value)
        if "email" in find and "@" in shown:
            return False
        return not ("phone" in find and re.search(r"\d{7}", shown))


def _fraction(value: Any) -> Fraction | None:
    """Return the exact number that a value is, or names as text; None for anything else."""
    if isinstance(value, str):
        return Fraction(value.strip()) if _DECIMAL.fullmatch(value.strip()) or _is_float(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(str(value))


def _is_float(value: str) -> bool:
    """Tell whether a table has written a large number in its short form."""
    return re.fullmatch(r"-?[0-9](\.[0-9]{1,17})?e[+-]?[0-9]{1,3}", value) is not None


@cache
def known_fields() -> dict[str, type[FieldCheck]]:
    """Return the check of every kind that the auditor knows, by its word in the policy."""
    found: dict[str, type[FieldCheck]] = {}
    own = [("the auditor", kind) for kind in (Token, Prefix, MaskCheck, RoundCheck, ShiftCheck, RedactCheck)]
    for place, check in (*own, *installed("stream_anon.auditor_fields")):
        if not (isinstance(check, type) and issubclass(check, FieldCheck)):
            raise PluginError(f"{place}: not a class based on the auditor's FieldCheck")
        if found.setdefault(check.kind, check) is not check:
            raise PluginError(f'{place}: the auditor has a check of kind "{check.kind}" already')
    return found


class UnknownCheck(FieldCheck):
    """The check of a kind that the auditor does not know: any value passes, and the audit says so."""

    def formed(self, value: Any) -> bool:
        """Accept every value: nobody says what it should be."""
        return True


def kind_of(spec: dict[str, Any]) -> str:
    """Return the word that an attribute's entry says of its publication, or the usual one of its role."""
    given = spec.get("publish")
    if given is None:
        return "drop" if spec["role"] == "identifier" else "keep"
    return str(given["kind"] if isinstance(given, dict) else given)


def field_check(spec: dict[str, Any], comparison: Comparison) -> FieldCheck | None:
    """Return the check of an attribute; None for one that is published as it came, or not at all."""
    kind, given = kind_of(spec), spec.get("publish")
    if kind in ("drop", "keep") or spec["role"] == "quasi_identifier":
        return None
    settings = given if isinstance(given, dict) else {}
    return known_fields().get(kind, UnknownCheck)(settings, spec["role"] == "sensitive", comparison)
