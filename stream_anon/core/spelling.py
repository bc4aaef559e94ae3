"""Compare texts: spelling differences that do not matter are removed before two texts count as one value or person."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from stream_anon.core.hierarchy.tree import text_of

_INVISIBLE = "Cf"
"""Zero-width spaces and joiners, marks of direction and the like: two texts that differ in them look the same."""

EVERY_RULE = ("unicode", "space", "case")


class Spelling:
    """The rules for comparing texts, and for which of them mean a missing value.

    `rules` may hold `unicode` (compatible characters are one, invisible ones are none), `space` (around the text does
    not count) and `case` (upper and lower are one). `missing` are the words for nothing, compared in the same way.

    >>> spelling = Spelling(("unicode", "space", "case"), ["n/a"])
    >>> spelling("Hiv "), spelling("HIV"), spelling("\\uff28\\uff29\\uff36\\u200b"), spelling("N/A"), spelling(7.0)
    ('hiv', 'hiv', 'hiv', None, '7')
    """

    def __init__(self, rules: Iterable[str], missing: Sequence[str] = ()) -> None:
        chosen = frozenset(rules)
        self._unicode, self._space, self._case = ("unicode" in chosen, "space" in chosen, "case" in chosen)
        self._missing = frozenset({"", *map(self.fold, missing)})

    def __call__(self, value: object) -> str | None:
        """Return the text by which a value is known, None if it means a missing value."""
        if value is None:
            return None
        if isinstance(value, str):
            text = self.fold(value)
        else:
            text = text_of(int(value) if isinstance(value, float) and value.is_integer() else value)
        return None if text in self._missing else text

    def fold(self, text: str) -> str:
        """Return the text without the differences that the rules ignore."""
        if self._unicode and not text.isascii():
            text = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != _INVISIBLE)
        if self._case:
            text = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text.casefold())
        return text.strip() if self._space else text


def near_equal(texts: Iterable[str]) -> int:
    """Count texts that differ from another one only in punctuation, inner space or accents.

    >>> near_equal(["type 2", "type-2", "type 1", "Muller", "M\\u00fcller"])
    2
    """
    kinds: dict[str, int] = {}
    for text in texts:
        bare = "".join(c for c in unicodedata.normalize("NFKD", text).casefold() if c.isalnum())
        kinds[bare] = kinds.get(bare, 0) + 1
    return sum(count - 1 for bare, count in kinds.items() if bare)
