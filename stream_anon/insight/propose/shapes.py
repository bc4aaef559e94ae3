"""Choose how to generalize a column: the type and hierarchy that fit the sample, with some room around."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stream_anon.insight.propose.columns import Column
from stream_anon.insight.propose.hints import CODES, DATES, NOMINAL
from stream_anon.policy.reading.scalars import resolve

FEW, MANY = 12, 500
"""Values up to which a list is easy to read, and up to which a table beside the policy is."""

RARE = 0.01
"""Share of the rows below which a value is kept together with other rare ones."""

CELLS = 20
"""Cells of the fine grid over the range of a number: ages fall into fives, years into fives."""

CODES_OF_KINDS = 40
"""Codes up to which whole numbers under a name like "occupation" are taken for kinds, not for amounts."""

LONG_YEARS = 15
"""Years from which on dates are given decades: dates of birth have no other way to be a little less exact."""

ROOM = 0.1
"""The share of the width that a range is given on each side for what the sample did not show."""

LARGE = 1e14
"""Beyond it, and closer together than its inverse, numbers can no longer be distinguished."""

FAR = 1e6
"""How many times its width the range of a decimal may be away from 0, so that ten digits distinguish its cells."""

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")
_EPOCHS = {"seconds": (1e8, 4e9), "milliseconds": (1e11, 4e12)}


@dataclass(frozen=True, slots=True)
class Shape:
    """A type, a hierarchy as written in the policy, its description, and the file beside it, if any."""

    type: str
    hierarchy: str
    words: str
    file: str = ""
    table: tuple[tuple[str, ...], ...] = ()
    unknown: str = ""
    """What is outside the hierarchy and becomes a leaf of its own, in words; empty if nothing is."""


def word(text: str) -> str:
    """Return a printable text as YAML writes it, quoted where it could be mistaken for something else.

    >>> word("Never-married"), word("010"), word("a: b"), word("${x}")
    ('Never-married', '"010"', '"a: b"', '"$${x}"')
    """
    if _PLAIN.fullmatch(text) and resolve(text) == text:
        return text
    return json.dumps(text.replace("${", "$${"), ensure_ascii=False)


def shape_of(column: Column) -> Shape | None:
    """Return the way to generalize a column, None if there is none that makes sense."""
    if column.dates:
        return _calendar(column)
    if code := _code(column):
        return code
    if len(column.counts) > 2 and (column.reads_as("integer") or column.reads_as("number")):
        if column.words & NOMINAL and len(column.counts) <= CODES_OF_KINDS and column.reads_as("integer"):
            return _nominal(column)
        return _epoch(column) or _interval(column)
    if column.words_among_numbers:
        return _interval(column)
    return _categories(column)


def _nominal(column: Column) -> Shape | None:
    """Propose a list of codes: that 3 lies between 2 and 4 means nothing where they stand for kinds."""
    shape = _categories(column)
    return None if shape is None else replace(shape, words=f"{shape.words}, codes of kinds by its name")


def _calendar(column: Column) -> Shape:
    timed = sum(count for text, count in column.counts.items() if len(text) > 10) * 2 > column.present
    years = [text[:4] for text in column.counts if text[:4].isdigit()]
    decades = ", decade" if years and int(max(years)) - int(min(years)) >= LONG_YEARS else ""
    levels = ("hour, day, week, month, year" if timed else "day, week, month, year") + decades
    return Shape("timestamp", f"{{kind: calendar, levels: [{levels}]}}", "instants" if timed else "dates")


def _epoch(column: Column) -> Shape | None:
    numbers = column.numbers()
    for unit, (low, high) in _EPOCHS.items():
        if column.words & DATES and low <= numbers[0] and numbers[-1] <= high:
            hierarchy = f"{{kind: calendar, levels: [hour, day, week, month, year], epoch: {unit}}}"
            return Shape("timestamp", hierarchy, f"{unit} since 1970")
    return None


def _code(column: Column) -> Shape | None:
    """Recognize codes of one length: by their name, or because a number would have lost a leading zero."""
    lengths = {len(text) for text in column.counts}
    if len(lengths) != 1 or not 3 <= min(lengths) <= 12 or len(column.counts) <= FEW:
        return None
    digits = all(text.isascii() and text.isdigit() for text in column.counts)
    zeros = digits and any(text.startswith("0") for text in column.counts)
    letters = all(text.isascii() and text.isalnum() for text in column.counts)
    mixed = letters and not digits and all(any(c.isdigit() for c in text) for text in column.counts)
    if not (zeros or (column.words & CODES and (digits or letters)) or mixed):
        return None
    length, alphabet = min(lengths), "" if digits else ", alphabet: alphanumeric"
    return Shape("category", f"{{kind: prefix, length: {length}{alphabet}}}", f"codes of {length} characters")


def _interval(column: Column) -> Shape | None:
    """Propose a range with room on both sides and two grids; None if the numbers are too large or too close."""
    numbers = column.numbers()
    if len(numbers) < 2:
        return None
    whole = all(number.is_integer() for number in numbers)
    low, high = numbers[0], numbers[-1]
    width = high - low
    largest = max(-low, high)
    if not largest <= LARGE or not width >= 1 / LARGE or (not whole and largest > FAR * width):
        return None
    fine = _round(width / CELLS, whole)
    coarse = fine * (5 if _leading(fine) != 5 else 2)
    if whole and width < CELLS:  # a scale or a count: any room would make every loss look small
        hierarchy = f"{{kind: interval, range: [{low:.0f}, {high:.0f}]}}"
        return Shape("integer", hierarchy, _span("whole numbers", low, high), unknown=_outside(column))
    room = math.ceil(ROOM * width / fine) * fine
    least = math.floor(low / fine) * fine - room
    least = 0 if low >= 0 > least else least
    most = math.floor(high / fine) * fine + fine + room - (1 if whole else 0)
    ends = f"range: [{_number(least)}, {_number(most)}], snap: [{_number(fine)}, {_number(coarse)}]"
    if whole:
        words = _span("whole numbers", low, high)
        return Shape("integer", f"{{kind: interval, {ends}}}", words, unknown=_outside(column, least, most))
    step = 10.0 ** (math.floor(math.log10(fine) + 1e-9) - 1)
    hierarchy = f"{{kind: interval, {ends}, step: {_number(step)}}}"
    return Shape("number", hierarchy, _span("numbers", low, high), unknown=_outside(column, least, most))


def _outside(column: Column, least: float = math.inf, most: float = -math.inf) -> str:
    """Say what of a column is no number of its range: words, and codes for exceptions."""
    found = [f"{column.words_among_numbers:,} rows with a word"] if column.words_among_numbers else []
    codes = [_number(code) for code in sorted(column.exceptions) if not least <= code <= most]
    return " and ".join([*found, *([f"the code{'s' if len(codes) > 1 else ''} {', '.join(codes)}"] if codes else [])])


def _span(kind: str, low: float, high: float) -> str:
    return f"{kind}, {_number(low)} to {_number(high)}"


def _round(width: float, whole: bool) -> float:
    """Return the next of 1, 2, 5, 10, ... that is not below `width`; a whole one if asked.

    >>> _round(4.6, True), _round(0.3, True), _round(0.3, False)
    (5.0, 1.0, 0.5)
    """
    power = 10.0 ** math.floor(math.log10(width)) if width > 0 else 1.0
    found = next(n * power for n in (1, 2, 5, 10) if n * power >= width * 0.999)
    return max(found, 1.0) if whole else found


def _leading(number: float) -> int:
    return round(number / 10.0 ** math.floor(math.log10(number) + 1e-9))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.10g}"


def _categories(column: Column) -> Shape | None:
    values = sorted(column.counts)
    if len(values) > MANY or (column.share > 0.5 and column.present >= 20) or not all(map(str.isprintable, values)):
        return None
    rare = [value for value in values if column.counts[value] < RARE * column.present]
    if len(values) <= FEW or len(rare) < 2 or len(rare) == len(values) or not all(map(_fits_a_table, values)):
        return Shape("category", f"{{kind: flat, values: [{', '.join(map(word, values))}]}}", _in_words(values))
    file = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', column.name).strip('.-') or 'column'}.csv"
    table = tuple((value, "rare" if value in set(rare) else value, "*") for value in values)
    return Shape("category", f"{{kind: csv, path: {word(f'hierarchies/{file}')}}}", _in_words(values), file, table)


def _fits_a_table(value: str) -> bool:
    """Tell whether a line of a CSV file can hold the value as it is, and no other node has its name."""
    return value == value.strip() and value.isprintable() and not set(value) & set(';"#') and value not in ("rare", "*")


def _in_words(values: Sequence[str]) -> str:
    return f"{len(values)} different value{'s' if len(values) != 1 else ''}"
