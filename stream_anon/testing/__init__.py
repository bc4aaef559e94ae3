"""Checks for what others add: algorithms, privacy models, hierarchies, formats. And a broker in memory, for tests.

Each check runs the contract that the package's own parts keep to, and raises an AssertionError that names the broken
rule. Nothing but tests imports this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream_anon.testing.checks.algorithms import check_algorithm
    from stream_anon.testing.checks.formats import check_format
    from stream_anon.testing.checks.hierarchies import check_hierarchy
    from stream_anon.testing.checks.models import check_model

_HOMES = {
    "check_algorithm": "algorithms",
    "check_format": "formats",
    "check_hierarchy": "hierarchies",
    "check_model": "models",
}

__all__ = ["check_algorithm", "check_format", "check_hierarchy", "check_model"]


def __getattr__(name: str) -> Any:
    """Load a check from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'stream_anon.testing' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"stream_anon.testing.checks.{_HOMES[name]}"), name)
