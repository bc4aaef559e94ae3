"""The format of JSON lines: one record a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, ClassVar

from stream_anon.core.gate import Group
from stream_anon.core.publish import encode_all, encode_lines
from stream_anon.formats.format import Format, Part
from stream_anon.formats.text.file import read_lines
from stream_anon.formats.text.lines import Lines


class JsonWriter:
    """A writer of one JSON record a line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        self._file.write(encode_lines(groups))

    def close(self) -> None:
        """Do nothing: every line is already written."""


class JsonLines(Format):
    """Files with one JSON object a line, read as `pipe` reads them, so that both reject the same lines."""

    name: ClassVar[str] = "json"
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    packable: ClassVar[bool] = True
    continues: ClassVar[bool] = True

    def read(self, path: Path, at_once: int, encoding: str | None = None) -> Iterator[Part]:
        """Yield the lines of a file."""
        return read_lines(path, partial(Lines, encoding=encoding, name=str(path)), at_once)

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> JsonWriter:
        """Return a writer of lines."""
        return JsonWriter(file)

    def pieces(self, groups: Sequence[Group], quote_formulas: bool = True) -> tuple[bytes, list[bytes]]:
        """Return the lines of each group."""
        return b"", [b"\n".join([*records, b""]) for records in encode_all(groups)]
