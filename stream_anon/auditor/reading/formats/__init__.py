"""The kinds of files that hold tables, beside JSON lines, which the auditor reads by itself.

Every module here that defines a format is known by its suffixes; other distributions add theirs by entry points of the
group `stream_anon.auditor_formats`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stream_anon.auditor.reading.formats.base import Bad, Columns, TableFormat, Unreadable
from stream_anon.auditor.reading.unpacked import PACKED, suffix_of
from stream_anon.errors import PluginError
from stream_anon.plugins import defined, installed

__all__ = ["JSON", "Bad", "Columns", "TableFormat", "Unreadable", "format_of", "known_formats"]

JSON = (".jsonl", ".ndjson", ".json")


@cache
def known_formats() -> dict[str, TableFormat]:
    """Return the kinds of files that hold tables, by suffix."""
    found: dict[str, TableFormat] = {}
    own = [(place, kind) for place, kind in defined(__name__, __path__) if hasattr(kind, "suffixes")]
    for place, kind in (*own, *installed("stream_anon.auditor_formats")):
        if not (isinstance(kind, type) and issubclass(kind, TableFormat)):
            raise PluginError(f"{place}: not a class based on the auditor's TableFormat")
        made = kind()
        for suffix in made.suffixes:
            if suffix in JSON or found.setdefault(suffix, made) is not made:
                raise PluginError(f'{place}: the auditor reads files that end with "{suffix}" already')
    return found


def format_of(path: Path) -> TableFormat | None:
    """Return the format of a file by its suffix, None for JSON lines; raise Unreadable for what nobody knows."""
    suffix = suffix_of(path)
    if suffix not in known_formats() and suffix not in JSON:
        known = ", ".join([*known_formats(), *JSON])
        raise Unreadable(f"{path}: unknown kind of file; its name must end with one of: {known}")
    found = known_formats().get(suffix)
    if path.suffix.lower() in PACKED and found is not None and not found.packable:
        raise Unreadable(f"{path}: unpack it first; such files are packed inside")
    return found
