"""The errors of the package, each with the place, the reason and the remedy; no message ever holds a data value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import ClassVar


class Severity(StrEnum):
    """The severity of a finding: an error keeps a policy from starting, a warning is only printed."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding at one place of one file. Lines and columns count from 1; 0 means "the file as a whole"."""

    code: str
    message: str
    file: str
    line: int = 0
    column: int = 0
    width: int = 1
    hint: str = ""
    severity: Severity = Severity.ERROR

    @property
    def place(self) -> str:
        """The place as editors and terminals understand it: `file:line:column`."""
        return ":".join([self.file, *(str(n) for n in (self.line, self.column) if n)])

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.place}: {self.severity} {self.code}: {self.message}{hint}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding about a policy before its place in the file is known."""

    path: tuple[str | int, ...]
    code: str
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR


def warning(path: tuple[str | int, ...], code: str, message: str, hint: str = "") -> Problem:
    """Return a finding that is printed and keeps nothing from starting."""
    return Problem(path, code, message, hint, Severity.WARNING)


class StreamAnonError(Exception):
    """The root of all errors raised on purpose; `exit_code` is what a command ends with."""

    exit_code: ClassVar[int] = 1


class PolicyError(StreamAnonError):
    """The policy, or a file it names, cannot be used. Nothing has been read or published."""

    exit_code: ClassVar[int] = 3

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


class PluginError(StreamAnonError):
    """Something that another distribution adds cannot be used: its entry point fails, or takes a name that is taken."""

    exit_code: ClassVar[int] = 3


class Unsupported(StreamAnonError):
    """An algorithm cannot honour the policy: choose a different algorithm, or change the policy."""

    exit_code: ClassVar[int] = 3


class TooMuchLost(StreamAnonError):
    """More records were rejected or suppressed than the policy or the caller allows."""

    exit_code: ClassVar[int] = 5


class PrivacyViolation(StreamAnonError):
    """A group that breaks the policy reached the gate. It was not published; this is a defect of the program."""

    exit_code: ClassVar[int] = 70


def nearest(word: str, valid: Sequence[str]) -> str:
    """Return a hint naming the valid word closest to `word`, or all of them when none is close and they are few.

    >>> nearest("quasi", ["identifier", "quasi_identifier"])
    'did you mean "quasi_identifier"?'
    >>> nearest("x", ["flat", "tree"])
    'one of: flat, tree'
    """
    close = [v for v in valid if word and v.startswith(word.lower())] or get_close_matches(word.lower(), valid, 1, 0.5)
    if close:
        return f'did you mean "{close[0]}"?'
    return f"one of: {', '.join(valid)}" if 0 < len(valid) <= 12 else ""
