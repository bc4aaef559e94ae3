"""Load and compile a policy from its path: the first step of every command that takes a policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from stream_anon.core.schema import Schema
from stream_anon.errors import Diagnostic, PolicyError, Problem
from stream_anon.policy import LoadedPolicy, load
from stream_anon.policy.load import in_order

_NOT_READ = frozenset({"missing-file", "not-a-file", "unreadable-file", "file-too-large"})


def prepare(path: Path) -> tuple[LoadedPolicy, Schema]:
    """Load and compile a policy; raise PolicyError with every finding at a place the reader can open."""
    loaded = load(path)
    try:
        return loaded, Schema.compile(loaded)
    except PolicyError as error:
        raise PolicyError(in_order(_placed(diagnostic, loaded) for diagnostic in error.diagnostics)) from None


def _placed(diagnostic: Diagnostic, loaded: LoadedPolicy) -> Diagnostic:
    """Give a finding in a file that the policy names a path from here; one in a missing file, the place of its name."""
    name = diagnostic.file
    if name == loaded.source.file:
        return diagnostic
    path = _find(loaded.source.data, name) if diagnostic.code in _NOT_READ else None
    if path is not None:
        message = f"{name}: {diagnostic.message}"
        return loaded.source.diagnostic(Problem(path, diagnostic.code, message, diagnostic.hint))
    return replace(diagnostic, file=str(loaded.file(name)))


def _find(data: Any, word: str) -> tuple[str | int, ...] | None:
    """Return the path of the first value that is `word`."""
    if data == word and isinstance(data, str):
        return ()
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, child in children:
        below = _find(child, word)
        if below is not None:
            return (step, *below)
    return None
