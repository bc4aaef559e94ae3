"""The contract of a file format, as the auditor reads it: columns of a table, some rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from stream_anon.errors import StreamAnonError


class Bad(NamedTuple):
    """A line that is not a record: its place among those read with it, its number, and the code of what is wrong."""

    place: int
    line: int
    code: str


class Unreadable(StreamAnonError):
    """A file to be audited cannot be read."""


Columns = dict[str, list[Any]]
"""The values of some rows by column, nested ones by dotted name; all lists are equally long."""


class TableFormat(ABC):
    """One kind of file that holds a table, known by its suffixes.

    `typed`: a label is a list or a number as it was written; else it is text, and what is no text is in it as JSON.
    `packable`: files are text, which may be packed and in any encoding, and are opened by `unpacked.open_file`.
    """

    suffixes: ClassVar[tuple[str, ...]]
    typed: ClassVar[bool] = True
    packable: ClassVar[bool] = False

    @abstractmethod
    def columns(self, path: Path, encoding: str | None = None) -> Iterator[tuple[Columns, list[Bad]]]:
        """Yield columns, some rows at a time, and which lines are not records; these have no value in any column."""

    def published(self, path: Path) -> Iterator[tuple[Columns, list[Bad]]]:
        """Yield the columns of an output, without what its writer added to cells; raw tables are read as they are."""
        return self.columns(path)
