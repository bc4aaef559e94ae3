"""The first rows of a table as a sample, one at a time; an error names the line, never what is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from stream_anon.errors import StreamAnonError
from stream_anon.io.tables import KINDS, flat, read_parts

LIMIT = 10_000
"""Rows. Enough to meet rare values, few enough to answer within a second or two."""

Row = Mapping[str, Any]


class SampleError(StreamAnonError):
    """The data sample cannot be read. The policy may still be good."""


def read_sample(path: Path, limit: int = LIMIT) -> Iterator[Row]:
    """The first rows; fields of nested records are named by their dotted path, absent and empty ones are left out."""
    json = KINDS.get(path.suffix.lower(), "json") == "json"
    return islice(_lines_of_json(path) if json else _lines_of_table(path), limit)


def _lines_of_table(path: Path) -> Iterator[Row]:
    for part in read_parts(path):
        for cells in part.cells:
            yield {name: cell for name, cell in cells.items() if cell not in ("", None)}


def _lines_of_json(path: Path) -> Iterator[Row]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _decoded(decode, line.removeprefix(b"\xef\xbb\xbf"), f"{path}:{number}")
    except OSError as error:
        raise SampleError(f"{path}: cannot be read: {error.strerror}") from None


def _decoded(decode: Callable[[bytes], dict[str, Any]], line: bytes, place: str) -> dict[str, Any]:
    try:
        return flat(decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SampleError(f"{place}: this line is not a JSON object") from None
