"""The meaning of published labels, per kind of hierarchy, by the auditor's own arithmetic.

Every module here that defines a scale is known by its kind; other distributions add theirs by entry points of the group
`stream_anon.auditor_scales`. Labels of a kind that nobody knows are reported as not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from stream_anon.auditor.scales.base import Absent, Reading, Scale, text
from stream_anon.auditor.scales.trees import TreeScale
from stream_anon.auditor.scales.unknown import UnknownScale
from stream_anon.errors import PluginError
from stream_anon.plugins import installed

__all__ = ["SCALES", "Absent", "Reading", "Scale", "TreeScale", "UnknownScale", "text"]


def _known() -> dict[str, type[Scale]]:
    found: dict[str, type[Scale]] = {}
    for place, scale in (*_own(), *installed("stream_anon.auditor_scales")):
        if not (isinstance(scale, type) and issubclass(scale, Scale)):
            raise PluginError(f"{place}: not a class based on the auditor's Scale")
        if found.setdefault(scale.kind, scale) is not scale:
            raise PluginError(f'{place}: the auditor has a scale of kind "{scale.kind}" already')
    return found


def _own() -> Iterator[tuple[str, Any]]:
    """Yield the scales of this package, those that define a kind."""
    for name in sorted(info.name for info in iter_modules(__path__)):
        module = import_module(f"{__name__}.{name}")
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__ and hasattr(kind, "kind"):
                yield module.__name__, kind


SCALES = _known()
"""Every kind of hierarchy whose labels the auditor understands, by its word in the policy."""
