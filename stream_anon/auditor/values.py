"""Turn sensitive values into numbers that are equal where the values count as one."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from stream_anon.auditor.scales.base import Scale, text
from stream_anon.auditor.scales.trees import TreeScale

UNKNOWN_CODE, MISSING_CODE = 0, 1
"""The codes of a value that its hierarchy does not know, and of one that is not there."""

MISSING_VALUES = ("n/a", "na", "nan", "null", "missing", "?")
"""Words that stand for nothing unless the policy lists others."""

_CACHED = 1_000_000


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
            value = unicodedata.normalize("NFKC", value)
            value = "".join(letter for letter in value if unicodedata.category(letter) != "Cf")
        if "case" in self.ignored:
            value = unicodedata.normalize("NFKC", value.casefold()) if not value.isascii() else value.lower()
        return value.strip() if "space" in self.ignored else value

    def is_missing(self, value: Any) -> bool:
        """Tell whether a value stands for a missing one."""
        if value is None:
            return True
        return isinstance(value, str) and self.plain(value) in {"", *map(self.plain, self.missing)}


@dataclass(frozen=True, slots=True, eq=False)
class SensitiveColumn:
    """A sensitive attribute and how its values are told apart. `raised`: a value may be published as an ancestor."""

    name: str
    scale: Scale | None
    numeric: bool
    raised: bool
    guard_field: str | None
    comparison: Comparison
    codes: dict[Any, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", _Codes(self))

    def code(self, value: Any) -> int:
        """Return the number of a value, `UNKNOWN_CODE` for one that must not be published."""
        if self.scale is None:
            if self.comparison.is_missing(value):
                return MISSING_CODE
            return hash((self.name, _number(value) if self.numeric else self.comparison.plain(text(value)))) or 2
        value = self.respelled(value)
        if value is None or value == "":
            return UNKNOWN_CODE if math.isnan(self.scale.identity(None)) else MISSING_CODE
        return self._in_hierarchy(value)

    def nearly_equal(self) -> int:
        """Count published values that differ from another one only in punctuation, inner space or accents."""
        if self.scale is not None or self.numeric:
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


def _number(value: Any) -> float | str:
    try:
        return float(value)
    except (TypeError, ValueError):
        return text(value)
