"""Compare texts: spelling differences that do not matter are removed before two texts count as one value or person."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from stream_anon.core.hierarchy.tree import text_of

_UNSEEN = frozenset({"Cf", "Cc"})
"""Categories of zero-width spaces, marks of direction, control characters: texts that differ in them look the same."""

_BLANK = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),  # the combining grapheme joiner
        (0x115F, 0x1160),  # fillers of Hangul, here and below
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),  # selectors of variants, here and below
        (0x2800, 0x2800),  # Braille without a dot
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFFA0, 0xFFA0),
        (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)
"""Letters and marks that show nothing, in categories whose others do."""

EVERY_RULE = ("unicode", "space", "case")


class Spelling:
    """The rules for comparing texts, and for which of them mean a missing value.

    `rules` may hold `unicode` (compatible characters are one, invisible ones are none), `space` (around the text does
    not count, within it any amount is one) and `case` (upper and lower are one). `missing` are the words for nothing,
    compared in the same way.

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
        if value is None or value != value:  # NaN is not equal to itself
            return None
        if isinstance(value, str):
            text = self.fold(value)
        else:
            text = text_of(int(value) if isinstance(value, float) and value.is_integer() else value)
        return None if text in self._missing else text

    def each(self, values: Sequence[object]) -> list[str | None]:
        """Return the same of many values: those of plain ASCII are folded all at once.

        >>> Spelling(("unicode", "space", "case"), ["n/a"]).each(["P1", "p 1", "N/A"])
        ['p1', 'p 1', None]
        """
        try:
            joined = "\n".join(values)  # type: ignore[arg-type]
        except TypeError:  # not all are texts
            return list(map(self, values))
        if not (joined.isascii() and joined.replace("\n", "").isprintable() and joined.count("\n") == len(values) - 1):
            return list(map(self, values))
        folded: list[str | None] = [*(joined.casefold() if self._case else joined).split("\n")]
        if self._space and " " in joined:
            folded = [" ".join(text.split()) if text else text for text in folded]
        return folded if self._missing.isdisjoint(folded) else [None if t in self._missing else t for t in folded]

    def fold(self, text: str) -> str:
        """Return the text without the differences that the rules ignore."""
        if self._unicode and not (text.isascii() and text.isprintable()):
            text = unicodedata.normalize("NFKC", "".join(filter(_is_seen, text)))
        if self._case:
            text = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text.casefold())
        return " ".join(text.split()) if self._space else text


def _is_seen(character: str) -> bool:
    """Tell whether a character shows, if only as a space."""
    return character.isspace() or (character not in _BLANK and unicodedata.category(character) not in _UNSEEN)


def spelled_twice(texts: Iterable[str]) -> int:
    """Count texts that differ from another one only in space, case, Unicode forms, punctuation or accents.

    >>> spelled_twice(["Zurich", "z\u00fcrich ", "ZURICH", "Bern"])
    2
    """
    own = set(texts)
    folded = set(map(Spelling(EVERY_RULE).fold, own))
    return len(own) - len(folded) + near_equal(folded)


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
