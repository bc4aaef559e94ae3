"""Read tables from files a part at a time, in the format that the suffix of the name says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from stream_anon import formats
from stream_anon.errors import PluginError
from stream_anon.formats.format import AT_ONCE, Format, Part, TableError, flat
from stream_anon.formats.packing import PACKED, bare
from stream_anon.plugins import defined, installed

__all__ = ["AT_ONCE", "Format", "Part", "TableError", "flat", "format_of", "known_formats", "read_parts"]


@cache
def known_formats() -> dict[str, Format]:
    """Return the formats by suffix: those of this package, and those of other distributions."""
    own = [
        (place, kind)
        for place, kind in defined(formats.__name__, formats.__path__)
        if issubclass(kind, Format) and kind is not Format
    ]
    found: dict[str, Format] = {}
    for place, kind in (*own, *installed("stream_anon.formats")):
        if not (isinstance(kind, type) and issubclass(kind, Format)):
            raise PluginError(f"{place}: not a class based on Format")
        made = kind()
        for suffix in made.suffixes:
            if found.setdefault(suffix, made) is not made:
                raise PluginError(f'{place}: files that end with "{suffix}" are those of {found[suffix].name} already')
    return found


def format_of(path: Path, otherwise: str | None = None) -> Format:
    """Return the format of a file by its suffix, that before .gz or .zst; raise TableError if there is none.

    `otherwise` is a suffix whose format is that of files with an unknown one.
    """
    found = known_formats().get(bare(path).suffix.lower()) or (known_formats()[otherwise] if otherwise else None)
    if found is None:
        known = ", ".join(known_formats())
        raise TableError(
            f"{path}: unknown kind of file; its name must end with one of: {known}; lines and arrays also with "
            + " or ".join(PACKED)
        )
    if path.suffix.lower() in PACKED and not found.packable:
        raise TableError(f"{path}: {found.name} files are packed inside: unpack it, and name it {bare(path).name}")
    return found


def read_parts(
    path: Path, at_once: int = AT_ONCE, otherwise: str | None = None, encoding: str | None = None
) -> Iterator[Part]:
    """Read the rows of a table, some at a time; `reached` goes from 0 to 1.

    `otherwise` is a suffix whose format is that of files with an unknown one; without it such a file is refused.
    `encoding` is that of a file of text without a byte order mark; UTF-8 if it is not named.
    """
    found = format_of(path, otherwise)
    if encoding is not None and not found.packable:
        raise TableError(f"{path}: {found.name} files have no encoding to be named: leave it out")
    try:
        yield from found.read(path, at_once) if encoding is None else found.read(path, at_once, encoding)
    except OSError as error:
        raise TableError(
            f"{path}: cannot be read: {error.strerror or 'not a file of its kind'}: is the name right?"
        ) from None
