"""Codes of one length, such as zip codes, that lose characters from the right."""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
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
from stream_anon.core.hierarchy.tree import text_of

_ALPHABETS = {"digits": string.digits, "alphanumeric": string.digits + string.ascii_uppercase}


class Prefix:
    """Codes read as numbers in the base of their alphabet; each masked character costs 1/length.

    >>> zips = Prefix(5)
    >>> zips.label(2139, 2139), zips.label(2135, 2139), zips.label(2139, 90210)
    ('02139', '0213*', '*')
    """

    def __init__(
        self,
        length: int,
        alphabet: Literal["digits", "alphanumeric"] = "digits",
        leaves: Leaves = Leaves(),  # noqa: B008
    ) -> None:
        self._length = length
        self._alphabet = _ALPHABETS[alphabet]
        self._extra = leaves
        base = len(self._alphabet)
        self.top = base**length
        self._units = tuple(base**i for i in range(length))
        self._levels = tuple(i / length for i in range(length))
        self._digits = np.full(256, -1, dtype=np.int64)  # by the byte of a character, -1 for one that is none of ours
        for digit, character in enumerate(self._alphabet):
            self._digits[[ord(character), ord(character.lower())]] = digit
        self._masked = lru_cache(maxsize=4096)(self._written)  # prefixes repeat

    def _position(self, value: Any) -> int | None:
        text = text_of(value).upper()
        if len(text) != self._length or any(character not in self._alphabet for character in text):
            return None
        return int(text, len(self._alphabet))

    def encode(self, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Positions; a code of another length or alphabet is unknown."""
        codes = self._encode_all(values)
        return encode_each(values, self._position, self._extra, self.top) if codes is None else (codes, None)

    def _encode_all(self, values: Sequence[Any]) -> Ints | None:
        """All at once, if all of them are codes."""
        try:
            text = "".join(values)
        except TypeError:
            return None
        if not text.isascii() or len(text) != self._length * len(values) or len(set(map(len, values))) > 1:
            return None
        digits = self._digits[np.frombuffer(text.encode(), dtype=np.uint8)].reshape(-1, self._length)
        return None if (digits < 0).any() else np.asarray(digits @ np.array(self._units[::-1]))

    def loss(self, low: Ints, high: Ints) -> Floats:
        """Return the share of characters masked."""
        return ladder_loss(np.asarray(low), np.asarray(high), self._units, self._levels, self.top)

    def label(self, low: int, high: int) -> str:
        """Return the common beginning, the rest masked; `*` if nothing is common."""
        if high >= self.top:
            return "*" if low != high else self._extra.label(low, self.top)
        masked = shared(self._units, low, high)
        return "*" if masked == self._length else self._masked(low // self._units[masked], masked)

    def _written(self, prefix: int, masked: int) -> str:
        text = "*" * masked
        for _ in range(self._length - masked):
            prefix, digit = divmod(prefix, len(self._alphabet))
            text = self._alphabet[digit] + text
        return text

    def contains(self, label: Any, value: Any) -> bool:
        """Whether the code begins like the label; an absence is covered by its own leaf and by `*`."""
        if value is None or value == "":
            return label in ("*", MISSING_LABEL)
        code = self._position(value)
        if code is None:
            return label in ("*", UNKNOWN_LABEL)
        return label == "*" or any(self._masked(code // u, masked) == label for masked, u in enumerate(self._units))

    def cost_table(self) -> CostTable:
        """Return a ladder of powers of the alphabet's size."""
        least = (*self._levels, 1.0)[1]
        return CostTable(Kind.LADDER, units=self._units, levels=self._levels, highest=self.top, least=least)

    def signature(self) -> str:
        """Return all settings as text."""
        return f"prefix {self._length} {self._alphabet} {self._extra}"


class PrefixHierarchy(HierarchySettings):
    """Codes of one length that lose characters from the right, such as zip codes: 02139, 0213*, 021**."""

    kind: Literal["prefix"]
    length: int = Field(ge=1, le=12)
    alphabet: Literal["digits", "alphanumeric"] = "digits"

    def build(self, folder: Path, leaves: Leaves) -> Prefix:
        """Return the codes of this length."""
        return Prefix(self.length, self.alphabet, leaves)
