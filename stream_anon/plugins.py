"""Find what extends the program: in the modules of a package, and in the entry points of other distributions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Any

from stream_anon.errors import PluginError


def defined(package: str, path: Iterable[str]) -> Iterator[tuple[str, type]]:
    """Yield every class that a module of the package defines, with the name of the module, in the order of names."""
    for name in sorted(info.name for info in iter_modules(path)):
        module = import_module(f"{package}.{name}")
        for kind in vars(module).values():
            if isinstance(kind, type) and kind.__module__ == module.__name__:
                yield module.__name__, kind


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
