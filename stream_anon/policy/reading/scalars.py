"""What a single word of the policy means: its type by YAML 1.2's core schema, and `${NAME}` from the environment."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

_NULL = re.compile(r"(~|null|Null|NULL)?")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_OCTAL = re.compile(r"0o[0-7]{1,200}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,200}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"(?P<sign>[-+]?)\.(inf|Inf|INF)")
_NAN = re.compile(r"\.(nan|NaN|NAN)")
_KEPT = re.compile(r"secret", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\$\{|\$\{((?P<name>[A-Za-z_][A-Za-z0-9_]*)(:-(?P<default>[^}]*))?\})?")

MAKE_RANDOM = "python -c 'import secrets; print(secrets.token_urlsafe(32))'"


def resolve(text: str) -> str | int | float | bool | None:
    """Return the value of a word without quotes. `NO` is text and `010` is ten, unlike in YAML 1.1.

    >>> [resolve(word) for word in ("NO", "010", "0x1f", "1e3", "true", "~", "5s")]
    ['NO', 10, 31, 1000.0, True, None, '5s']
    """
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text) or _FALSE.fullmatch(text):
        return text[0] in "tT"
    for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            return int(text, base)
    if _FLOAT.fullmatch(text):
        return float(text)
    if infinite := _INFINITE.fullmatch(text):
        return -math.inf if infinite["sign"] == "-" else math.inf
    return math.nan if _NAN.fullmatch(text) else text


class VariableProblem(NamedTuple):
    """A `${...}` that cannot be replaced."""

    code: str
    message: str
    hint: str


class Substitution(NamedTuple):
    """A word after its variables were replaced, and whether the environment (not a default) had a part in it."""

    text: str
    problems: list[VariableProblem]
    from_environment: bool


def substitute(text: str, environment: Mapping[str, str]) -> Substitution:
    """Replace `${NAME}` and `${NAME:-default}`; `$${` stands for a plain `${`. An empty variable counts as unset.

    >>> substitute("${HOST:-localhost}:${PORT}", {"PORT": "9092"}).text
    'localhost:9092'
    >>> substitute("${PORT}", {}).problems[0].message
    'the environment variable PORT is not set'
    """
    problems: list[VariableProblem] = []
    used = False

    def value(match: re.Match[str]) -> str:
        nonlocal used
        if match[0] == "$${":
            return "${"
        name, default = match["name"], match["default"]
        if name is None:
            problems.append(VariableProblem("bad-variable", '"${" does not begin a variable', "write ${NAME}, or $${"))
            return ""
        given = environment.get(name)
        used = used or bool(given)
        found = given or default
        if found is None:
            hint = f"export {name}=..., or give a default: ${{{name}:-...}}"
            if _KEPT.search(name):  # a default would stand in the file
                hint = f"export {name}=... with the one in use, or a new one: {MAKE_RANDOM}"
            problems.append(VariableProblem("unset-variable", f"the environment variable {name} is not set", hint))
            return ""
        return found

    return Substitution(_VARIABLE.sub(value, text), problems, used)
