"""Turn decoded values into what JSON could have brought, and tell which of them a declared field may not have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any
from uuid import UUID

_NUMBER, _SCALAR = frozenset({int, float}), frozenset({str, int, float, bool})
ALLOWED: Mapping[str, frozenset[type]] = {
    "category": frozenset({str, int, bool}),
    "integer": frozenset({int}),
    "number": _NUMBER,
    "timestamp": _NUMBER | {str},
    "any": _SCALAR | {list},
    "identifier": _SCALAR,
    "psf": frozenset({int}),
    "label": frozenset({str}),
}
"""The types of values that a field of a policy's type may have, beside None: those that it may have in JSON."""

Getter = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """Return a value as JSON would hold it: dates and instants as text, decimals as numbers; others as they are.

    >>> plain(date(2024, 2, 29)), plain(Decimal("1.50")), plain(Decimal("7"))
    ('2024-02-29', 1.5, 7)
    """
    if isinstance(value, date | time):  # an instant is a date too
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str) and type(value) is not str:
        return str(value)
    return value


def plain_record(value: Any) -> Any:
    """Return a record as JSON would hold it, without nulls in objects and without what JSON cannot hold."""
    if isinstance(value, Mapping):
        return {
            name: plain_record(cell)
            for name, cell in value.items()
            if cell is not None and not isinstance(cell, bytes | bytearray)
        }
    return [plain_record(each) for each in value] if isinstance(value, list) else plain(value)


def checked(values: list[Any], kind: str) -> tuple[list[Any], list[int]]:
    """Return a column as JSON would hold it, and the places of values that the field may not have."""
    allowed = ALLOWED[kind]
    types = set(map(type, values)) - {type(None)}
    if not types <= allowed:
        values = [value if type(value) in allowed else plain(value) for value in values]
        types = set(map(type, values)) - {type(None)}
    if types <= allowed and not types & {float, str, list}:
        return values, []
    wrong = [
        i
        for i, value in enumerate(values)
        if value is not None
        and (
            type(value) not in allowed
            or (type(value) is float and not math.isfinite(value))
            or (type(value) is str and not _is_text(value))
            or (type(value) is list and any(type(each) is float and not math.isfinite(each) for each in value))
        )
    ]
    return values, wrong


def path_getter(path: Sequence[str]) -> Getter:
    """Return a function from nested mappings to the value at a path, None where a part of it is missing."""
    first, *rest = path
    if not rest:
        return lambda record: record.get(first)

    def get(record: Any) -> Any:
        for name in path:
            if not isinstance(record, Mapping):
                return None
            record = record.get(name)
        return record

    return get


def _is_text(value: str) -> bool:
    """Tell whether a text can be written: halves of characters, which JSON may escape, cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
