"""Says in plain words what a model refused, at the path of the word to change; does not repeat what was refused.

Only a word that had to be one of a fixed list is shown, because the hint is about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from stream_anon.errors import Problem, nearest
from stream_anon.policy.reading.scalars import resolve
from stream_anon.policy.reading.words import Path, Spot, trace

_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
}

IN_QUOTES = "put it in quotes"
"""The remedy where text was wanted and a number, a truth value or nothing was written."""

_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}


class Finding(NamedTuple):
    """A problem, and whether it is about the key at its path rather than the value."""

    problem: Problem
    at_key: bool = False


def findings(error: ValidationError, data: Any) -> list[Finding]:
    """All that the models refused in `data`."""
    details = [(trace(detail["loc"], data), detail) for detail in error.errors(include_url=False, include_input=False)]
    wrong: dict[Path, list[str]] = {}
    found: list[Finding] = []
    for spot, detail in details:
        if detail["type"] in _TYPES:
            wrong.setdefault(spot.path, []).append(_TYPES[detail["type"]])
        else:
            found.append(_finding(spot, detail, data))
    # A value that may be of several types is refused once per type; what was refused inside it says more.
    deepest = _without_parents([*wrong, *(finding.problem.path for finding in found)])
    found += [Finding(_wrong_type(path, kinds, data)) for path, kinds in wrong.items() if path in deepest]
    return found


def _finding(spot: Spot, detail: ErrorDetails, data: Any) -> Finding:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        word, keys = str(spot.path[-1]), _parent_keys(detail["loc"], data)
        return Finding(
            Problem(spot.path, "unknown-key", f'"{word}" is not a key here', nearest(word, keys)), at_key=True
        )
    if kind == "missing":
        return _missing(spot.path)
    if kind == "union_tag_not_found":
        return _missing((*spot.path, context["discriminator"].strip("'")), value_at(data, spot.path))
    if kind == "union_tag_invalid":
        return _unknown_kind(spot.path, context)
    if kind == "literal_error":
        return Finding(_literal(spot.path, context["expected"], data))
    make = _MAKERS.get(kind, _bad_value)
    return Finding(make(spot.path, detail))


def _missing(path: Path, given: Iterable[str] = ()) -> Finding:
    """Return that a key is not there; `given` are the keys that are, of which one may be meant for it."""
    if isinstance(path[-1], int):
        return Finding(Problem(path[:-1], "bad-value", f"{_name(path[:-1])} has too few entries"))
    meant = [key for key in given if nearest(key, [path[-1]]).startswith("did")]
    hint = f'write "{path[-1]}" for "{_short(meant[0])}"' if meant else f'add "{path[-1]}: ..."'
    return Finding(Problem(path, "missing-key", f'the key "{path[-1]}" is missing', hint), at_key=True)


def _unknown_kind(path: Path, context: dict[str, Any]) -> Finding:
    key, tag = context["discriminator"].strip("'"), str(context["tag"])
    valid = _quoted(context["expected_tags"])
    return Finding(Problem((*path, key), "unknown-kind", f'"{_short(tag)}" is not a {key}', nearest(tag, valid)))


def _literal(path: Path, expected: str, data: Any) -> Problem:
    valid, given = re.split(r", | or ", expected.replace("'", "")), value_at(data, path)
    hint = nearest(given, valid) if isinstance(given, str) else ""
    if hint.startswith("one of"):  # the message lists them already
        hint = ""
    return Problem(path, "bad-value", f"{_name(path)} must be one of: {', '.join(valid)}", hint)


def _bound(path: Path, detail: ErrorDetails) -> Problem:
    key, words = _BOUNDS[detail["type"]]
    limit = detail.get("ctx", {})[key]
    return Problem(path, "out-of-range", f"{_name(path)} must be {words} {limit:g}")


def _length(path: Path, detail: ErrorDetails) -> Problem:
    context = detail.get("ctx", {})
    words = "at least" if "min_length" in context else "at most"
    limit = context.get("min_length", context.get("max_length"))
    unit = "characters" if detail["type"].startswith("string") else "entries"
    return Problem(path, "bad-length", f"{_name(path)} must have {words} {limit} {unit}")


def _own_words(path: Path, detail: ErrorDetails) -> Problem:
    return Problem(path, "bad-value", str(detail.get("ctx", {}).get("error", "not a valid value")))


def _pattern(path: Path, detail: ErrorDetails) -> Problem:
    hint = "use letters, digits, dot, dash and underscore"
    return Problem(path, "bad-value", f"{_name(path)} has a character that is not allowed", hint)


def _bad_value(path: Path, detail: ErrorDetails) -> Problem:
    return Problem(path, "bad-value", f"{_name(path)}: {detail['msg'].lower()}")


_MAKERS: dict[str, Callable[[Path, ErrorDetails], Problem]] = {
    "too_short": _length,
    "too_long": _length,
    "string_too_short": _length,
    "string_too_long": _length,
    "string_pattern_mismatch": _pattern,
    "value_error": _own_words,
    **dict.fromkeys(_BOUNDS, _bound),
}


def _wrong_type(path: Path, kinds: Iterable[str], data: Any) -> Problem:
    wanted = list(dict.fromkeys(kinds))
    if "a number" in wanted:
        wanted = [kind for kind in wanted if kind != "a whole number"]
    words = " or ".join([", ".join(wanted[:-1]), wanted[-1]] if len(wanted) > 1 else wanted)
    value = value_at(data, path)
    hint = ""
    if "text" in wanted and not isinstance(value, list | dict | str):
        hint = IN_QUOTES
    elif isinstance(value, str) and "number" in words and isinstance(resolve(value), int | float):
        hint = "write it without quotes"
    elif value is None:
        hint = "give it a value, or remove the key"
    return Problem(path, "wrong-type", f"{_name(path)} must be {words}", hint)


def value_at(data: Any, path: Path) -> Any:
    """Return the value at `path`, or None."""
    for step in path:
        try:
            data = data[step]
        except (LookupError, TypeError):
            return None
    return data


def _parent_keys(location: Path, data: Any) -> list[str]:
    return trace(location[:-1], data).keys


def _without_parents(paths: list[Path]) -> set[Path]:
    parents = {path[:end] for path in paths for end in range(len(path))}
    return {path for path in paths if path not in parents}


def _name(path: Path) -> str:
    if not path:
        return "the policy"
    last = path[-1]
    return f'"{_short(last)}"' if isinstance(last, str) else f"entry {last + 1} of {_name(path[:-1])}"


def _short(word: str) -> str:
    return word if len(word) <= 40 else word[:37] + "..."


def _quoted(words: str) -> list[str]:
    return re.findall(r"'([^']*)'", words)
