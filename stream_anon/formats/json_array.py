"""Files that hold all records in one JSON array, as exports of databases and of pandas do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from stream_anon.core.decode import Payload, Reject
from stream_anon.formats.format import Part, TableError
from stream_anon.formats.lines import LINE_LIMIT

_BOM = b"\xef\xbb\xbf"
_PEEK = 1 << 16


def holds_an_array(path: Path) -> bool:
    """Tell whether a file begins as an array does, white space aside."""
    with path.open("rb") as file:
        return file.read(_PEEK).removeprefix(_BOM).lstrip()[:1] == b"["


def read_array(path: Path, at_once: int) -> Iterator[Part]:
    """Yield the records of an array; a record's number is its place in it. The whole file is held in memory."""
    try:
        found = msgspec.json.decode(path.read_bytes().removeprefix(_BOM), type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TableError(f"{path}: begins as a JSON array, and is none: {error}") from None
    for start in range(0, len(found), at_once):
        payloads = [_payload(bytes(item)) for item in found[start : start + at_once]]
        reached = start + len(payloads)
        yield Part(start + 1, np.arange(start + 1, reached + 1), payloads, reached / len(found))


def _payload(item: bytes) -> Payload:
    return Reject.TOO_LARGE if len(item) > LINE_LIMIT else item
