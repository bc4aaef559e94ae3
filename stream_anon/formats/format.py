"""The contract of a file format: how the rows of a table are read, and how groups are written.

A format is one module of this package with a subclass of `Format`; other distributions add theirs by entry points of
the group `stream_anon.formats`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

import numpy as np

from stream_anon.core.decode import LineCount, Payload, Rejection
from stream_anon.core.encode import Encoded, Encoder
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.errors import StreamAnonError

AT_ONCE = 10_000
"""Rows of a part."""


class TableError(StreamAnonError):
    """A table cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Part:
    """A range of rows of a table, and how far into the whole they reach.

    `first` is the place of the first row among all rows, from 1; `numbers` are the lines of the file on which rows
    begin, or their places where there are no lines. `lines` counts where the lines went so far. Rows of a topic also
    bring where they stand, partition and offset, and their own times.
    """

    first: int
    numbers: Ints
    payloads: Sequence[Payload]
    reached: float
    lines: LineCount | None = None
    refs: Ints | None = None
    times: Floats | None = None

    def __len__(self) -> int:
        return len(self.payloads)

    def encode(self, encoder: Encoder, arrived: Floats) -> Encoded:
        """Encode the rows; a rejection's index is the number of its row."""
        ref = self.refs
        if ref is None:
            places = np.arange(self.first, self.first + len(self))
            ref = np.stack([np.zeros(len(self), dtype=np.int64), places], axis=1)
        encoded = encoder.encode(self.payloads, ref, arrived)
        moved = [Rejection(int(self.numbers[r.index]), r.code, r.column) for r in encoded.rejections]
        return Encoded(encoded.batch, moved)


class RecordWriter(Protocol):
    """The interface of a writer: it takes groups in the order they are to be written."""

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        ...

    def close(self) -> None:
        """Finish the output: no groups follow."""
        ...


class Format(ABC):
    """One kind of file, known by its suffixes.

    `text`: all values are text, so that their types must be guessed. `packable`: files are text, which may be packed
    (gzip, zstd) and in any encoding: `read` opens them by `packing.opened`, and `Lines` makes UTF-8 of them.
    `continues`: what was written of a file can be continued byte by byte after an interruption: its bytes depend on the
    groups, and not on how they were handed over.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    text: ClassVar[bool] = False
    packable: ClassVar[bool] = False
    continues: ClassVar[bool] = False

    @abstractmethod
    def read(self, path: Path, at_once: int, encoding: str | None = None) -> Iterator[Part]:
        """Yield the rows of a file, up to so many at a time.

        A row is JSON in bytes, or its cells by name, dotted or one in the other; what is no row is the code of a
        rejection. `OSError` may be raised; a file of another kind is a `TableError` that names it. `encoding` is given
        to what is `packable`, and only if somebody named one.
        """

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> RecordWriter:
        """Return a writer into an open file, which stays open; raise TableError if the format can only be read."""
        raise TableError(f"{self.name} files can be read, not written")

    def pieces(self, groups: Sequence[Group], quote_formulas: bool = True) -> tuple[bytes, list[bytes]] | None:
        """Return how a file begins and the bytes of each group, if a file is these, one after another, in any order."""
        return None


def refuse_same_names(place: str, names: Sequence[str]) -> None:
    """Raise TableError if two columns have one name: nobody could say whose cells are meant.

    Columns are told by number: without a header the first row stands in the place of the names.
    """
    for number, name in enumerate(names):
        if name in names[:number]:
            first = names.index(name) + 1
            raise TableError(f"{place}: columns {first} and {number + 1} have the same name: rename one")


def flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the fields of a nested record by dotted path, without null ones.

    >>> flat({"a": {"b": 1, "c": None}, "d": [2]})
    {'a.b': 1, 'd': [2]}
    """
    found: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        elif value is not None:
            found[f"{prefix}{key}"] = value
    return found
