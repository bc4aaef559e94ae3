"""Records in JSON: one a line, or, in files named .json, the items of one array."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from stream_anon.auditor.reading.formats.base import Unreadable
from stream_anon.auditor.reading.unpacked import PACKED, open_file, suffix_of

LONGEST_LINE, LARGEST_ARRAY = 1 << 20, 1 << 29
"""Bytes of a line beyond which it is no record, and of a packed array beyond which it is not held."""

_BOM = b"\xef\xbb\xbf"
_PEEK = 1 << 16


def json_records(path: Path, encoding: str | None = None) -> Iterator[bytes]:
    """Yield the lines of a file, without a byte order mark, or the items of the array that it is.

    Of an overlong line no more than its beginning is held and yielded, which no reader takes for a record.
    """
    with open_file(path, encoding) as file:
        start = file.read(_PEEK)
        if suffix_of(path) == ".json" and start.removeprefix(_BOM).lstrip().startswith(b"["):
            yield from _items(path, start + file.read(LARGEST_ARRAY if path.suffix.lower() in PACKED else -1))
            return
    with open_file(path, encoding) as file:
        for number, line in enumerate(_lines(file)):
            yield line.removeprefix(_BOM) if number == 0 else line


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(LONGEST_LINE + 1):
        rest = line
        while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE + 1)
        yield line


def _items(path: Path, data: bytes) -> Iterator[bytes]:
    if len(data) > LARGEST_ARRAY and path.suffix.lower() in PACKED:
        raise Unreadable(
            f"{path}: an array of more than {LARGEST_ARRAY >> 20:,} MiB, packed: write JSON lines (.jsonl)"
        )
    try:
        return map(bytes, msgspec.json.decode(data.removeprefix(_BOM), type=list[msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreadable(f"{path}: begins as a JSON array, and is none") from None
