"""The meaning of published labels, per kind of hierarchy, by the auditor's own arithmetic.

Every module here that defines a scale is known by its kind; other distributions add theirs by entry points of the group
`stream_anon.auditor_scales`. Labels of a kind that nobody knows are reported as not judged.
"""

from __future__ import annotations

from functools import cache

from stream_anon.auditor.scales.base import Absent, Reading, Scale, text
from stream_anon.auditor.scales.trees import TreeScale
from stream_anon.auditor.scales.unknown import UnknownScale
from stream_anon.errors import PluginError
from stream_anon.plugins import defined, installed

__all__ = ["Absent", "Reading", "Scale", "TreeScale", "UnknownScale", "known_scales", "text"]


@cache
def known_scales() -> dict[str, type[Scale]]:
    """Return every kind of hierarchy whose labels the auditor understands, by its word in the policy."""
    found: dict[str, type[Scale]] = {}
    own = [(place, kind) for place, kind in defined(__name__, __path__) if hasattr(kind, "kind")]
    for place, scale in (*own, *installed("stream_anon.auditor_scales")):
        if not (isinstance(scale, type) and issubclass(scale, Scale)):
            raise PluginError(f"{place}: not a class based on the auditor's Scale")
        if found.setdefault(scale.kind, scale) is not scale:
            raise PluginError(f'{place}: the auditor has a scale of kind "{scale.kind}" already')
    return found
