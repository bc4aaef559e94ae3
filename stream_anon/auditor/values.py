"""Turn sensitive values into numbers that are equal where the values count as one."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stream_anon.auditor.scales.base import Scale, text
from stream_anon.auditor.scales.trees import TreeScale

UNKNOWN_CODE, MISSING_CODE = 0, 1
"""The codes of a value that its hierarchy does not know, and of one that is not there."""

MISSING_VALUES = ("n/a", "na", "nan", "null", "missing", "?")
"""Words that stand for nothing unless the policy lists others."""

_CACHED = 1_000_000

_SHOWS_NOTHING = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Joiners, fillers, selectors of variants and Braille without a dot: characters nobody sees that are not called so."""


class _Codes(dict[Any, int]):
    """A bounded cache from value to code; it forgets everything when it is full, which changes no result."""

    def __init__(self, column: SensitiveColumn) -> None:
        super().__init__()
        self._column = column

    def __missing__(self, value: Any) -> int:
        if len(self) >= _CACHED:
            self.clear()
        self[value] = code = self._column.code(value)
        return code


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rules for comparing texts: which differences do not count, and which words mean a missing value."""

    ignored: frozenset[str]
    missing: tuple[str, ...] = ()

    def plain(self, value: str) -> str:
        """Return the text without the differences that do not count.

        >>> Comparison(frozenset({"case", "space", "unicode"})).plain(" \uff28iv\u200b ")
        'hiv'
        """
        if "unicode" in self.ignored:
            value = "".join(letter for letter in _SHOWS_NOTHING.sub("", value) if not _unseen(letter))
            value = unicodedata.normalize("NFKC", value)
        if "case" in self.ignored:
            value = unicodedata.normalize("NFKC", value.casefold()) if not value.isascii() else value.lower()
        return re.sub(r"\s+", " ", value).strip() if "space" in self.ignored else value

    def name(self, value: Any) -> str:
        """Return the text by which a person is known: 7 and 7.0 are one.

        >>> Comparison(frozenset({"case"})).name(7.0), Comparison(frozenset({"case"})).name("P7")
        ('7', 'p7')
        """
        return self.plain(text(int(value) if isinstance(value, float) and value.is_integer() else value))

    def is_missing(self, value: Any) -> bool:
        """Tell whether a value stands for a missing one."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return True
        return isinstance(value, str) and self.plain(value) in {"", *map(self.plain, self.missing)}


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveColumn:
    """A sensitive attribute and how its values are told apart.

    `type` is that of the policy. `raised`: a value may be published as an ancestor. `absent`: one may be missing.
    """

    name: str
    scale: Scale | None
    type: str
    raised: bool
    absent: bool
    guard_field: str | None
    comparison: Comparison
    codes: dict[Any, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", _Codes(self))

    @property
    def _numeric(self) -> bool:
        return self.type in ("integer", "number")

    def codes_of(self, values: Iterable[Any]) -> list[int]:
        """Return the numbers of many values; `true` is not 1, though Python finds one under the key of the other."""
        codes = self.codes
        return [codes[value if type(value) is not bool else text(value)] for value in values]

    def code(self, value: Any) -> int:
        """Return the number of a value, `UNKNOWN_CODE` for one that must not be published."""
        if self.scale is None:
            if self.comparison.is_missing(value):
                return MISSING_CODE if self.absent else UNKNOWN_CODE
            known = _number(value, self.type == "integer") if self._numeric else self.comparison.plain(text(value))
            return hash((self.name, known)) or 2
        value = self.respelled(value)
        if value is None or value == "":
            return UNKNOWN_CODE if math.isnan(self.scale.identity(None)) else MISSING_CODE
        return self._in_hierarchy(value)

    def nearly_equal(self) -> int:
        """Count published values that differ from another one only in punctuation, inner space or accents."""
        if self.scale is not None or self._numeric:
            return 0
        letters: dict[str, set[int]] = {}
        for value, code in self.codes.items():
            bare = "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text(value)).casefold()))
            if bare and code != MISSING_CODE:
                letters.setdefault(bare, set()).add(code)
        return sum(len(codes) - 1 for codes in letters.values())

    def respelled(self, value: Any) -> Any:
        """Return the leaf of the tree that a value is spelled like; None for a word that means a missing value."""
        if not isinstance(self.scale, TreeScale) or value is None or text(value) in self.scale.spans:
            return value
        plain = self.comparison.plain(text(value))
        found = next((leaf for leaf in self.scale.leaves if self.comparison.plain(leaf) == plain), None)
        return found if found is not None else None if self.comparison.is_missing(value) else value

    def _in_hierarchy(self, value: Any) -> int:
        assert self.scale is not None  # noqa: S101 - for the type checker
        place = self.scale.identity(value)
        if not math.isnan(place):
            return hash((self.name, place)) or 2
        if self.raised and isinstance(self.scale, TreeScale) and isinstance(value, str) and value in self.scale.spans:
            return hash((self.name, *self.scale.span(value))) or 2
        return UNKNOWN_CODE


def _unseen(letter: str) -> bool:
    """Tell whether a character is a format or control character, but no space."""
    return unicodedata.category(letter) in ("Cf", "Cc") and not letter.isspace()


def _number(value: Any, whole: bool) -> float | str:
    """Return the number that a value is or names, of whatever size if whole; its text if there is none."""
    for kind in (int, float) if whole and not isinstance(value, float) else (float,):
        try:
            return kind(value)
        except (TypeError, ValueError, OverflowError):
            continue
    return text(value)
