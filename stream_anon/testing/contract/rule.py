"""A rule of a contract, by its name: whoever breaks it is told which one it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stream_anon.errors import PrivacyViolation


class Broken(AssertionError):
    """A rule of a contract that does not hold; the message begins with the name of the rule."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.rule = name


def rule(name: str, holds: object, detail: str) -> None:
    """Raise Broken unless the rule holds."""
    if not holds:
        raise Broken(name, detail)


@contextmanager
def judged(subject: str) -> Iterator[None]:
    """Say of any other error which rule it breaks: the gate stops unsafe groups and rows that come twice."""
    try:
        yield
    except Broken:
        raise
    except PrivacyViolation as error:
        raise Broken("each-row-once" if "twice" in str(error) else "safe-groups", f"{subject}: {error}") from error
    except Exception as error:
        raise Broken("raises-nothing", f"{subject}: {type(error).__name__}: {error}") from error
