"""Records in JSON: one a line, or, in files named .json, the items of one array."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from stream_anon.auditor.reading.formats.base import Unreadable

_BOM = b"\xef\xbb\xbf"
_PEEK = 1 << 16


def json_records(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, without a byte order mark, or the items of the array that it is."""
    with path.open("rb") as file:
        start = file.read(_PEEK).removeprefix(_BOM).lstrip()
        file.seek(0)
        if path.suffix.lower() == ".json" and start.startswith(b"["):
            yield from _items(path, file.read().removeprefix(_BOM))
            return
        if first := file.readline().removeprefix(_BOM):
            yield first
        yield from file


def _items(path: Path, data: bytes) -> Iterator[bytes]:
    try:
        return map(bytes, msgspec.json.decode(data, type=list[msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreadable(f"{path}: begins as a JSON array, and is none") from None
