"""Find what other distributions add to this one, through the entry points they declare."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from stream_anon.errors import PluginError


def installed(group: str) -> Iterator[tuple[str, Any]]:
    """Yield what is declared in a group of entry points: where it comes from, and the thing itself.

    Raises PluginError for one that cannot be loaded: a policy that needs it must not be read as if it were not there.
    """
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        try:
            found = point.load()
        except Exception as error:
            raise PluginError(
                f"{place_of(point)}: cannot be loaded ({type(error).__name__}: {error}); update or uninstall it"
            ) from error
        yield place_of(point), found


def place_of(point: EntryPoint) -> str:
    """Return the place of an entry point in words: its distribution, its group and its name."""
    distribution = point.dist.name if point.dist is not None else "an unknown distribution"
    return f"{distribution}, entry point {point.group}: {point.name}"
