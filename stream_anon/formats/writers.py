"""Write anonymized records to a file that appears only when it is complete: CSV, JSON lines or Parquet."""

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

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Interval
from stream_anon.core.publish import encode_lines
from stream_anon.core.record_template import ENVELOPE
from stream_anon.core.schema import Schema
from stream_anon.formats.tables import TableError, arrow, flat, kind_of

Record = Mapping[str, Any]
_FORMULA = frozenset("=+-@\t\r")
_TELLING = 10_000  # records that show what types the columns of a Parquet file have


class RecordWriter(Protocol):
    """The interface of a writer: it takes groups in the order they are to be written."""

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        ...

    def close(self) -> None:
        """Finish the output: no groups follow."""
        ...


@contextmanager
def new_file(path: Path, overwrite: bool = False) -> Iterator[IO[bytes]]:
    """Open a draft that is renamed to `path` when all is written; raise if the file exists and may not be replaced."""
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
    """Raise TableError if the file exists and may not be replaced, or its folder does not exist."""
    if not path.parent.is_dir():
        raise TableError(f"{path}: cannot be written: there is no folder {path.parent}")
    if path.exists() and not overwrite:
        raise TableError(f"{path}: already exists; name another file, or pass --force")


def writer(kind: str, file: IO[bytes], quote_formulas: bool = True) -> RecordWriter:
    """Return a writer of the kind of the file."""
    if kind == "csv":
        return CsvWriter(file, quote_formulas)
    makers: dict[str, Callable[[IO[bytes]], RecordWriter]] = {"json": JsonWriter, "parquet": ParquetWriter}
    return makers[kind](file)


def writer_for(path: Path, file: IO[bytes], quote_formulas: bool = True) -> RecordWriter:
    """Return a writer of the kind that the name of the file says."""
    return writer(kind_of(path), file, quote_formulas)


class JsonWriter:
    """A writer of one JSON record a line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        self._file.write(encode_lines(groups))

    def close(self) -> None:
        """Do nothing: every line is already written."""


class CsvWriter:
    """A writer of one record a line, nested fields by dotted name; an interval or a set is written as JSON: `[50, 59]`.

    Text that a spreadsheet would run as a formula gets a `'` in front, unless `quote_formulas` is off.
    """

    def __init__(self, file: IO[bytes], quote_formulas: bool = True) -> None:
        self._quote = quote_formulas
        self._text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        self._writer: csv.DictWriter[str] | None = None

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        for group in groups:
            if self._writer is None:
                self._writer = csv.DictWriter(self._text, _columns(group), lineterminator="\n", restval="")
                self._writer.writeheader()
            quote = self._quote
            self._writer.writerows({k: _cell(v, quote) for k, v in flat(record).items()} for record in group.records())

    def close(self) -> None:
        """Flush the text and detach: the file stays open for whoever opened it."""
        self._text.flush()
        self._text.detach()


def _columns(group: Group) -> list[str]:
    """Return the names of all columns: those of the policy, then the envelope's."""
    record = next(group.records())
    return [
        *(column.name for column in group.schema.quasi),
        *group.schema.published,
        *(f"_anon.{name}" for name in record["_anon"]),
    ]


def _cell(value: Any, quote: bool) -> Any:
    if isinstance(value, str):
        return f"'{value}" if quote and value.lstrip("'")[:1] in _FORMULA else value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value


class ParquetWriter:
    """A writer with intervals and sets as lists; the first records are held back until they show the types."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._held: list[Group] = []
        self._writer: Any = None

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups as one row group."""
        self._held += groups
        if self._writer is not None or sum(len(group) for group in self._held) >= _TELLING:
            self._write_held()

    def _write_held(self) -> None:
        pa = arrow()
        records = [msgspec.to_builtins(record) for group in self._held for record in group.records()]
        try:
            if self._writer is None:
                first = pa.Table.from_pylist(records).schema
                types = [pa.field(f.name, _solid(pa, f, self._held[0].schema)) for f in first]
                self._writer = pa.parquet.ParquetWriter(self._file, pa.schema(types))
            table = pa.Table.from_pylist(records, schema=self._writer.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise TableError("a column has values of different types: Parquet cannot hold it, CSV can") from None
        self._writer.write_table(table)
        self._held = []

    def close(self) -> None:
        """Write the rest and the end of the file."""
        if self._held:
            self._write_held()
        if self._writer is not None:
            self._writer.close()


def _solid(pa: Any, column: Any, schema: Schema) -> Any:
    """Return a column's type: of an interval by its policy, of others by the values; text where there were none."""
    if column.name == ENVELOPE:  # without a subject no record shows the type of `subjects`
        kinds = {pa.int64(): ("row", "size", "subjects"), pa.string(): ("policy", "group"), pa.float64(): ("loss",)}
        types = {name: kind for kind, names in kinds.items() for name in names}
        return pa.struct([(fact.name, types[fact.name]) for fact in column.type])
    for quasi in schema.quasi:
        if quasi.name == column.name and isinstance(quasi.hierarchy, Interval):
            return pa.list_(pa.float64() if quasi.type == "number" else pa.int64())
    return pa.string() if pa.types.is_null(column.type) else column.type
