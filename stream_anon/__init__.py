"""Anonymize streams and tables of personal records: groups of at least k people, each record once, in bounded time.

The names listed in `__all__` are the public interface and stay compatible within a major version; everything else may
change. They are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stream_anon.api.anonymizer import Anonymizer, StateError
    from stream_anon.api.checks import ProposedPolicy, audit, propose
    from stream_anon.api.tables import AnonymizedTable, anonymize
    from stream_anon.api.worker import run_worker
    from stream_anon.auditor.result import AuditResult
    from stream_anon.core.decode import Rejection
    from stream_anon.core.gate import Group
    from stream_anon.errors import PolicyError, PrivacyViolation, StreamAnonError, TooMuchLost, Unsupported
    from stream_anon.policy import Policy, load_policy

__version__ = "0.1.0"

_HOMES = {
    "AnonymizedTable": "stream_anon.api.tables",
    "Anonymizer": "stream_anon.api.anonymizer",
    "AuditResult": "stream_anon.auditor.result",
    "Group": "stream_anon.core.gate",
    "Policy": "stream_anon.policy",
    "PolicyError": "stream_anon.errors",
    "PrivacyViolation": "stream_anon.errors",
    "ProposedPolicy": "stream_anon.api.checks",
    "Rejection": "stream_anon.core.decode",
    "StateError": "stream_anon.api.anonymizer",
    "StreamAnonError": "stream_anon.errors",
    "TooMuchLost": "stream_anon.errors",
    "Unsupported": "stream_anon.errors",
    "anonymize": "stream_anon.api.tables",
    "audit": "stream_anon.api.checks",
    "load_policy": "stream_anon.policy",
    "propose": "stream_anon.api.checks",
    "run_worker": "stream_anon.api.worker",
}
"""Where each public name lives."""

__all__ = [
    "AnonymizedTable",
    "Anonymizer",
    "AuditResult",
    "Group",
    "Policy",
    "PolicyError",
    "PrivacyViolation",
    "ProposedPolicy",
    "Rejection",
    "StateError",
    "StreamAnonError",
    "TooMuchLost",
    "Unsupported",
    "anonymize",
    "audit",
    "load_policy",
    "propose",
    "run_worker",
]


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'stream_anon' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
