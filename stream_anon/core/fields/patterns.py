"""Refuse regular expressions that a hostile text could make run for long.

The engine tries alternatives one after the other; how many there are at most for one starting place follows from the
pattern and the length of the text, and only patterns with few of them are accepted.
"""

from __future__ import annotations

import re
from math import inf
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

LONGEST = 256
"""Characters of a text in which patterns are sought."""

MOST_WAYS = 1_000
"""Ways to match from one place: 256 places of so many take some 50 ms at the very worst."""

_BOUND = "bound each repetition, like [a-z]{1,8}, or make it possessive, like [a-z]++"
_SINGLE = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)


def fault_of(pattern: str) -> tuple[str, str] | None:
    """Return what is wrong with a pattern, and a remedy; None for one that may be used.

    >>> fault_of(r"[0-9]{4}-[0-9]+"), fault_of("(a+)+b")[0]
    (None, 'a text could make this pattern try too many ways')
    """
    try:
        ways = _ways(parser.parse(pattern))
        empty = re.compile(pattern).search("") is not None
    except (re.error, RecursionError, OverflowError, ValueError):
        return "not a regular expression of Python", "see the module re of Python"
    except _Unsupported:
        return "back references, look-around and lazy repetitions are not supported", "describe what to hide itself"
    if empty:
        return "this pattern matches nothing, everywhere", "ask for one character at least"
    if ways > MOST_WAYS:
        return "a text could make this pattern try too many ways", _BOUND
    return None


class _Unsupported(Exception):
    """The pattern has a part whose work cannot be bounded here."""


def _ways(items: Any) -> float:
    """Return the largest number of ways to match a sequence from one place."""
    ways = 1.0
    for operation, argument in items:
        ways *= _of(operation, argument)
    return ways


def _of(operation: Any, argument: Any) -> float:
    if operation in _SINGLE or operation is codes.AT:
        return 1.0
    if operation is codes.SUBPATTERN:
        return _ways(argument[-1])
    if operation is codes.BRANCH:
        return sum(map(_ways, argument[1]))
    if operation is codes.MAX_REPEAT:
        low, high, inner = argument
        ways, times = _ways(inner), min(int(high), LONGEST) - min(int(low), LONGEST) + 1
        if ways == 1:
            return float(times) * (1.0 if len(inner) == 1 and inner[0][0] in _SINGLE else 2.0)
        return inf if int(high) > 8 else float(sum(ways**i for i in range(int(low), int(high) + 1)))
    if operation is codes.POSSESSIVE_REPEAT and len(argument[2]) == 1 and argument[2][0][0] in _SINGLE:
        return 1.0
    raise _Unsupported
