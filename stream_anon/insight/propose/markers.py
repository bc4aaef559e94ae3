"""Words and codes of sensitive columns that stand for nothing: published as they are, and never counted as a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stream_anon.core.lint import NOTHING
from stream_anon.insight.propose.columns import Column
from stream_anon.policy.policy import Policy

KNOWN: tuple[str, ...] = tuple(Policy.model_fields["missing_values"].default)
"""The words that every policy knows as missing."""

_MAY_BE_VALUES = frozenset({"other", "none", "undefined"})
"""Words that may well say something, as no illness or a rare one: `check` tells of them, a person decides."""

FEWEST = 2
"""Values that must be left for a group to differ in."""


def absent(column: Column) -> set[str]:
    """Return the values of a column that stand for nothing, in small letters and without space around.

    A number is a code only where it cannot be one of the others: below 0 where no other is, or far from them.

    >>> sorted(absent(Column("ill", ("flu", "Unknown", "N/A", "hiv", "-1"), True)))
    ['-1', 'n/a', 'unknown']
    >>> sorted(absent(Column("score", ("-2", "-1", "0", "1", "2", "999"), True)))
    ['999']
    """
    folded = {text.strip().casefold() for text in column.counts}
    found = (folded & (NOTHING | set(KNOWN))) - _MAY_BE_VALUES
    numbers = {text: number for text in folded if (number := _number(text)) is not None}
    codes = {text for text, number in numbers.items() if number in column.exceptions or f"{number:g}" in NOTHING}
    plain = [number for text, number in numbers.items() if text not in codes]
    for text in sorted(codes, key=lambda code: -abs(numbers[code])):
        if plain and not _far(numbers[text], plain):
            plain.append(numbers[text])
            found.discard(text)
        else:
            found.add(text)
    return found if len(folded) - len(found) >= FEWEST else set()


def missing_values(sensitive: Sequence[Column], subject: Column | None) -> list[str]:
    """Return the words for `missing_values:`, those that every policy knows first; empty if they are enough.

    The list holds for all sensitive columns and for the subject, so that nobody's value and nobody's name may be in it.
    """
    taken = set(_values(sensitive, subject))
    more = {text for column in sensitive for text in absent(column)} - set(KNOWN) - taken
    return [*KNOWN, *sorted(more)] if more else []


def _values(sensitive: Sequence[Column], subject: Column | None) -> Iterator[str]:
    for column in sensitive:
        yield from {text.strip().casefold() for text in column.counts} - absent(column)
    if subject is not None:
        yield from (text.strip().casefold() for text in subject.counts)


def _far(code: float, plain: Sequence[float]) -> bool:
    low, high = min(plain), max(plain)
    return code < 0 <= low or min(abs(code - low), abs(code - high)) > max(high - low, 1.0)


def _number(text: str) -> float | None:
    try:
        return float(text) if text[-1:].isdigit() else None
    except ValueError:
        return None
