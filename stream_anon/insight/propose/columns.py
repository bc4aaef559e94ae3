"""A column of a sample: how many values, how different, and which types the run can read them as."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stream_anon.core.decode import Decoder
from stream_anon.core.hierarchy.calendar import Calendar
from stream_anon.core.hierarchy.tree import text_of
from stream_anon.insight.propose.hints import MISSING_WORDS, words_of

ENOUGH = 20
"""Values below which nothing can be said about how different they are."""

NEARLY_UNIQUE = 0.9
"""A share of different values from which on a column points at single records."""

NEARLY_ALL = 0.95
"""A share of dates from which on a column is one of dates, and its other values are slips."""

EXCEPTIONS = frozenset(
    float(sign * number)
    for number in (7, 8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999, 7777, 8888, 9997, 9998, 9999)
    for sign in (1, -1)
) | {-1.0, -2.0, -3.0, 99999.0, 999999.0, -99999.0}
"""Numbers that are written where there is none: refused, does not know, does not apply."""

MOST_WORDS = 5
"""Different words in a column of numbers that may be said in place of one: more are values of their own."""

MOSTLY = 0.8
"""A share of numbers from which on a column of text is one of numbers that somebody wrote in several ways."""


@dataclass(frozen=True)
class Column:
    """One column: a value per row, None if missing. `text` means that all values came as text, as in CSV."""

    name: str
    values: tuple[Any, ...]
    text: bool

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of occurrences of each value, by the text under which a category knows it."""
        return Counter(text_of(value) for value in self.values if value is not None)

    @cached_property
    def present(self) -> int:
        """The number of rows with a value."""
        return self.counts.total()

    @property
    def missing(self) -> int:
        """The number of rows without one."""
        return len(self.values) - self.present

    @property
    def share(self) -> float:
        """The number of different values per value."""
        return len(self.counts) / max(self.present, 1)

    @property
    def unique(self) -> bool:
        """Whether nearly every row has a value of its own."""
        return self.present >= ENOUGH and self.share > NEARLY_UNIQUE

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        return words_of(self.name)

    @cached_property
    def nested(self) -> bool:
        """Whether some value is a list or an object, which nothing can generalize."""
        return any(isinstance(value, list | tuple | dict) for value in self.values)

    @cached_property
    def odd(self) -> int:
        """The number of rows with a word for "missing" in place of a number or a date; the run rejects them."""
        return sum(count for text, count in self.counts.items() if text.strip().lower() in MISSING_WORDS)

    def reads_as(self, type_: str) -> bool:
        """Tell whether the run can read every value as this type, except words for "missing"."""
        if self.text:
            decoder = Decoder({"x": type_})
            plain = [text for text in self.counts if text.strip().lower() not in MISSING_WORDS]
            return bool(plain) and not any(type(decoder.convert({"x": text})) is tuple for text in plain)
        wanted: set[type] = {int} if type_ == "integer" else {int, float}
        return self.present > 0 and {type(value) for value in self.values if value is not None} <= wanted

    @property
    def dates(self) -> bool:
        """Whether nearly every value is a date or an instant in ISO 8601, except words for "missing"."""
        plain = self.present - self.odd
        return plain > 0 and self.no_dates <= (1 - NEARLY_ALL) * plain

    @cached_property
    def no_dates(self) -> int:
        """The number of rows with a value that is neither a date nor a word for "missing"."""
        plain = [text for text in self.counts if text.strip().lower() not in MISSING_WORDS]
        trouble = Calendar(["day"]).encode(plain)[1]
        return sum(
            self.counts[text]
            for i, text in enumerate(plain)
            if (trouble is not None and trouble[i]) or text.isdigit() or len(text) < 8  # a number could be an instant
        )

    @cached_property
    def words_among_numbers(self) -> int:
        """The number of rows with a word where nearly all others have a number; 0 if it is no such column."""
        if not self.text:
            return 0
        decoder = Decoder({"x": "number"})
        words = [text for text in self.counts if type(decoder.convert({"x": text})) is tuple]
        count = sum(self.counts[text] for text in words)
        few = count <= (1 - NEARLY_ALL) * self.present and len(self.counts) - len(words) > MOST_WORDS
        return count if few and len(words) <= MOST_WORDS else 0

    @property
    def mostly_numbers(self) -> bool:
        """Whether most values of a column that does not read as numbers are numbers all the same."""
        decoder = Decoder({"x": "number"})
        read = sum(n for text, n in self.counts.items() if type(decoder.convert({"x": text})) is not tuple)
        return self.text and read > MOSTLY * self.present

    def numbers(self) -> list[float]:
        """Return the different values as numbers, without words among them and codes for exceptions."""
        found = sorted(self._parsed())
        return [number for number in found if number not in self.exceptions]

    @cached_property
    def exceptions(self) -> frozenset[float]:
        """The numbers that stand for no value, as -1 and 999 do: at an end, and far from all others.

        >>> Column("age", tuple(map(str, [999, -1, *range(18, 90)])), True).exceptions == {999.0, -1.0}
        True
        """
        found, numbers = set[float](), sorted(self._parsed())
        if len(numbers) <= MOST_WORDS:
            return frozenset()
        for end in (-1, 0):
            while len(numbers) > 2 and numbers[end] in EXCEPTIONS:
                rest = numbers[:-1] if end else numbers[1:]
                gap, width = abs(numbers[end] - rest[end]), max(rest[-1] - rest[0], 1.0)
                negative = numbers[end] < 0 <= rest[0]
                if not (negative or gap > width):
                    break
                found.add(numbers[end])
                numbers = rest
        return frozenset(found)

    def _parsed(self) -> set[float]:
        found = set()
        for text in self.counts:
            try:
                found.add(float(text))
            except ValueError:  # a word among numbers
                continue
        return {number for number in found if math.isfinite(number)}


def columns_of(rows: Sequence[Mapping[str, Any]], text: bool) -> list[Column]:
    """Return the columns of some rows, in the order in which they first appear."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [Column(name, tuple(row.get(name) for row in rows), text) for name in names]
