"""Writes anonymized records to a file that appears only when it is complete: CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Protocol

import msgspec

from stream_anon.core.group import Group
from stream_anon.io.tables import TableError, arrow, flat, kind_of

Record = Mapping[str, Any]


class Sheet(Protocol):
    """Takes groups, in the order they shall have."""

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        ...

    def close(self) -> None:
        """Nothing follows."""
        ...


@contextmanager
def new_file(path: Path, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """A file under another name, which takes the wanted one when all is written; a file already there is an error."""
    refuse_to_overwrite(path, overwrite)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        refuse_to_overwrite(path, overwrite)
        draft.replace(path)
    except OSError as error:
        raise TableError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        draft.unlink(missing_ok=True)


def refuse_to_overwrite(path: Path, overwrite: bool = False) -> None:
    """Raise TableError if the file is there and may not be replaced, or has no folder to be written into."""
    if not path.parent.is_dir():
        raise TableError(f"{path}: cannot be written: there is no folder {path.parent}")
    if path.exists() and not overwrite:
        raise TableError(f"{path}: is there already; name another file, or say --force")


def sheet(kind: str, file: IO[bytes]) -> Sheet:
    """A writer of the kind of the file."""
    makers: dict[str, Callable[[IO[bytes]], Sheet]] = {"csv": CsvSheet, "json": JsonSheet, "parquet": ParquetSheet}
    return makers[kind](file)


def sheet_for(path: Path, file: IO[bytes]) -> Sheet:
    """A writer of the kind that the name of the file says."""
    return sheet(kind_of(path), file)


class JsonSheet:
    """One record a line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        self._file.write(b"".join([record + b"\n" for group in groups for record in group.encoded()]))

    def close(self) -> None:
        """Nothing to do."""


class CsvSheet:
    """One record a line, nested fields by dotted name; an interval or a set is written as JSON: `[50, 59]`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        self._writer: csv.DictWriter[str] | None = None

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        for group in groups:
            if self._writer is None:
                self._writer = csv.DictWriter(self._text, _columns(group), lineterminator="\n", restval="")
                self._writer.writeheader()
            self._writer.writerows({k: _cell(v) for k, v in flat(record).items()} for record in group.records())

    def close(self) -> None:
        """The file stays open: it belongs to whoever opened it."""
        self._text.flush()
        self._text.detach()


def _columns(group: Group) -> list[str]:
    """The names of all columns: those of the policy, then the envelope's."""
    record = next(group.records())
    return [
        *(column.name for column in group.schema.quasi),
        *group.schema.published,
        *(f"_anon.{name}" for name in record["_anon"]),
    ]


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value


UNTOLD = 50_000
"""Records that wait for one that tells the type of each column; a column without any value by then has none."""


class ParquetSheet:
    """Columns with the types of the first values; intervals and sets are lists."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: Any = None
        self._waiting: list[Any] = []

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups as one row group, with those that waited for their types."""
        self._waiting += [msgspec.to_builtins(record) for group in groups for record in group.records()]
        self._write(whole=len(self._waiting) >= UNTOLD)

    def _write(self, whole: bool) -> None:
        pa = arrow()
        try:
            table = pa.Table.from_pylist(self._waiting, schema=None if self._writer is None else self._writer.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise TableError("a column has values of different types: Parquet cannot hold it, CSV can") from None
        if self._writer is None:
            if not whole and any(map(pa.types.is_null, table.schema.types)):
                return
            self._writer = pa.parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)
        self._waiting = []

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._waiting:
            self._write(whole=True)
        if self._writer is not None:
            self._writer.close()
