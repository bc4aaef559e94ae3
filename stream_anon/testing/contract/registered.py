"""Make a kind known while it is checked: a policy can name it, whether or not its distribution is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stream_anon.grammar.registry import Registry


@contextmanager
def registered(registry: Registry[Any], kind: type[Any]) -> Iterator[None]:
    """Add a kind to its registry, and take it back at the end if it was not there."""
    if kind in list(registry):
        yield
        return
    registry.add(kind, "the check")
    try:
        yield
    finally:
        registry.remove(kind)
