"""Take out of free text what names or reaches a person: addresses, numbers, and the identifiers of the same record.

Each pattern takes time in proportion to the text, whatever is in it. In doubt more is taken out: a date of eight digits
looks like the number of a telephone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import Field

from stream_anon.core.fields.presidio import LONGEST_SEARCHED, PresidioSettings, redactor
from stream_anon.core.fields.settings import Change, ChangeSettings, Materials, Refused
from stream_anon.core.hierarchy.tree import text_of
from stream_anon.core.spelling import Spelling

LONGEST_TEXT = 20_000
MOST_WORDS = 100
"""A text of more characters, or identifiers of more words than can be sought in it, reject the record."""

_WORD = re.compile(r"\S++")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){11,30}")
_IP4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_IP6 = re.compile(r"[0-9A-Fa-f:.]++")
_DIGITS = re.compile(r"[+(]?\d(?:[\d ().\-/\u00a0\u2010-\u2015]*\d)?")
_PHONE, _CARD = 7, 13
"""Digits, with what may stand between them, from which on a number can be a telephone's, and a card's."""

What = Literal["email", "phone", "iban", "card", "ip", "names"]
_EVERYTHING: list[What] = ["email", "phone", "iban", "card", "ip", "names"]


class Redact(ChangeSettings):
    """Free text in which what is found is replaced by its kind in brackets, like `[email]`.

    `find` lists what is sought: words with an @ (`email`), numbers of seven digits or more (`phone`), of thirteen or
    more (`card`), `iban`, `ip` addresses of both versions, and `names`: the values of all identifiers of the same
    record and the words in them. Texts are published in one Unicode form (NFKC). Patterns do not understand a text:
    other people's names stay in it. `presidio` lets Presidio look for more, before all others; texts of more than a
    thousand characters are rejected then.
    """

    roles = ("identifier", "insensitive", "sensitive")

    kind: Literal["redact"]
    find: list[What] = Field(default=_EVERYTHING, min_length=1)
    presidio: PresidioSettings | None = None

    def reads(self, materials: Materials) -> dict[str, str]:
        """Return the identifiers of the record."""
        if "names" not in self.find:
            return {}
        return {name: "identifier" for name in materials.identifiers if name != materials.name}

    def build(self, materials: Materials) -> Change:
        """Return the function from a text to what is left of it."""
        one_form, steps = Spelling(("unicode",)), [step for word, step in _STEPS if set(word) & set(self.find)]
        numbers = _numbers(_PHONE if "phone" in self.find else _CARD, "phone" in self.find)
        if {"phone", "card"} & set(self.find):
            steps.append(numbers)
        longest = LONGEST_TEXT
        if self.presidio is not None:
            steps.insert(0, redactor(self.presidio))
            longest = LONGEST_SEARCHED

        def redact(value: Any, beside: Sequence[Any]) -> Any:
            if not isinstance(value, str) or len(value) > longest:
                return Refused.WRONG_TYPE
            text = one_form.fold(value)
            for step in steps:
                text = step(text)
            names = [one_form.fold(text_of(name)) for name in beside if name is not None]
            words = {part for name in names for part in (name.strip(), *re.findall(r"\w+", name)) if part}
            return _without(text, words) if len(words) <= MOST_WORDS else Refused.WRONG_TYPE

        return redact


def _emails(text: str) -> str:
    return _WORD.sub(lambda word: "[email]" if "@" in word[0] else word[0], text) if "@" in text else text


def _ibans(text: str) -> str:
    return _IBAN.sub(_checked, text)


def _checked(found: re.Match[str]) -> str:
    """Return what is left of a text that begins like an account number; the check digits tell where one ends."""
    text = found[0]
    for end in range(len(text), 14, -1):
        if (end == len(text) or text[end] == " ") and _fits(text[:end].replace(" ", "")):
            return "[iban]" + text[end:]
    return text


def _fits(number: str) -> bool:
    return 15 <= len(number) <= 34 and int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97 == 1


def _addresses(text: str) -> str:
    text = _IP4.sub("[ip]", text)
    return _IP6.sub(lambda found: "[ip]" if "::" in found[0] or found[0].count(":") > 4 else found[0], text)


def _numbers(fewest: int, phones: bool) -> Callable[[str], str]:
    def replaced(found: re.Match[str]) -> str:
        digits = sum(map(str.isdecimal, found[0]))
        word = "[card]" if digits >= _CARD and not phones else "[phone]"
        return word if digits >= fewest else found[0]

    return lambda text: _DIGITS.sub(replaced, text)


_STEPS: tuple[tuple[tuple[What, ...], Callable[[str], str]], ...] = (
    (("email",), _emails),
    (("iban",), _ibans),
    (("ip",), _addresses),
)


def _without(text: str, words: set[str]) -> str:
    """Return the text without these names and words; short ones only where they stand alone."""
    if not words:
        return text
    sought = [
        re.escape(word) if len(word) > 2 else rf"(?<!\w){re.escape(word)}(?!\w)"
        for word in sorted(words, key=lambda word: (-len(word), word))
    ]
    return re.sub("|".join(sought), "[name]", text, flags=re.IGNORECASE)
