"""The format of files named .json: all records in one array, as exports of databases and of pandas are, or in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, ClassVar

import msgspec
import numpy as np

from stream_anon.core.decode import Payload, Reject
from stream_anon.core.gate import Group
from stream_anon.core.publish import encode_lines
from stream_anon.formats.format import Format, Part, TableError
from stream_anon.formats.packing import BrokenArchiveError, bare, opened
from stream_anon.formats.text.encodings import MARK, to_utf8
from stream_anon.formats.text.file import read_lines
from stream_anon.formats.text.lines import LINE_LIMIT, Lines

_BOM = b"\xef\xbb\xbf"
_PEEK = 1 << 16
_CHUNK = 1 << 20

LARGEST_ARRAY = 1 << 29
"""Bytes. An array is held in memory: a packed one, whose size is not seen, must not grow without end."""


class ArrayWriter:
    """A writer of one array, with a record on each line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._begun = False

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        if lines := encode_lines(groups).removesuffix(b"\n"):
            self._file.write((b",\n" if self._begun else b"[\n") + lines.replace(b"\n", b",\n"))
            self._begun = True

    def close(self) -> None:
        """Write the end of the array."""
        self._file.write(b"\n]\n" if self._begun else b"[]\n")


class JsonFile(Format):
    """Files with one array of records, or with a record a line; an array is written."""

    name: ClassVar[str] = "json array"
    suffixes: ClassVar[tuple[str, ...]] = (".json",)
    packable: ClassVar[bool] = True
    continues: ClassVar[bool] = True

    def read(self, path: Path, at_once: int, encoding: str | None = None) -> Iterator[Part]:
        """Yield the items of an array, or the lines of a file that does not begin as one."""
        if _holds_an_array(path, encoding):
            return _items(path, at_once, encoding)
        return read_lines(path, partial(Lines, encoding=encoding, name=str(path)), at_once)

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> ArrayWriter:
        """Return a writer of an array."""
        return ArrayWriter(file)


def _holds_an_array(path: Path, encoding: str | None) -> bool:
    """Tell whether a file begins as an array does, white space aside."""
    try:
        with opened(path) as file:
            return _utf8(file.read(_PEEK), encoding, path).removeprefix(_BOM).lstrip()[:1] == b"["
    except BrokenArchiveError:
        return False  # whoever reads the lines tells where it breaks


def _items(path: Path, at_once: int, encoding: str | None) -> Iterator[Part]:
    """Yield the records of an array; a record's number is its place in it. The whole file is held in memory."""
    try:
        found = msgspec.json.decode(_whole(path, encoding), type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TableError(f"{path}: begins as a JSON array, and is none: {error}") from None
    for start in range(0, len(found), at_once):
        payloads = [_payload(bytes(item)) for item in found[start : start + at_once]]
        reached = start + len(payloads)
        yield Part(start + 1, np.arange(start + 1, reached + 1), payloads, reached / len(found))


def _whole(path: Path, encoding: str | None) -> bytearray:
    """Return the bytes of a file, unpacked; raise TableError if it is too large to be held."""
    held = bytearray()
    with opened(path) as file:
        try:
            while chunk := file.read(_CHUNK):
                held += chunk
                if len(held) > LARGEST_ARRAY and bare(path) != path:
                    limit = f"{LARGEST_ARRAY >> 20:,} MiB"
                    raise TableError(f"{path}: an array of more than {limit}, packed: write JSON lines (.jsonl)")
        except BrokenArchiveError as error:
            raise TableError(f"{path}: {error} after {len(held):,} bytes") from None
    return bytearray(_utf8(held, encoding, path, whole=True)).removeprefix(_BOM)


def _utf8(data: bytes | bytearray, encoding: str | None, path: Path, whole: bool = False) -> bytes | bytearray:
    """Return text in UTF-8, as far as it makes whole letters or to its end."""
    made = to_utf8(bytes(data[:MARK]), encoding, str(path))
    return data if made is None else made(bytes(data)) + (made(b"") if whole else b"")


def _payload(item: bytes) -> Payload:
    return Reject.TOO_LARGE if len(item) > LINE_LIMIT else item
