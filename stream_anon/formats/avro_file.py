"""The format of Avro object files: read by fastavro where it is installed, written with the schema of the policy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from stream_anon.core.decode import Payload, Reject
from stream_anon.core.gate import Group
from stream_anon.errors import StreamAnonError
from stream_anon.formats.format import Format, Part, TableError
from stream_anon.formats.messages.avro.reading import fastavro
from stream_anon.formats.messages.avro.writing import AvroWriter, output_schema
from stream_anon.formats.messages.framing import HEAD
from stream_anon.formats.messages.values import plain
from stream_anon.formats.messages.varint import signed

_MAGIC = b"Obj\x01"


_BLOCK = 1000  # records of a block


class AvroFileWriter:
    """A writer of blocks of records, uncompressed. The same groups give the same file, however they are handed over."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: AvroWriter | None = None
        self._held: list[bytes] = []
        self._sync = b""

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups; those that do not fill a block wait."""
        if not groups:
            return
        if self._writer is None:
            self._writer = AvroWriter(groups[0].schema, 0)
            text = output_schema(groups[0].schema).text.encode()
            self._sync = hashlib.blake2b(text, digest_size=16).digest()
            facts = {b"avro.schema": text, b"avro.codec": b"null"}
            pairs = b"".join(_bytes(name) + _bytes(value) for name, value in facts.items())
            self._file.write(_MAGIC + signed(len(facts)) + pairs + signed(0) + self._sync)
        self._held += [record[HEAD:] for part in self._writer.write(groups) for record in part]
        while len(self._held) >= _BLOCK:
            self._write_block()

    def close(self) -> None:
        """Write the last block."""
        if self._held:
            self._write_block()

    def _write_block(self) -> None:
        records, self._held = self._held[:_BLOCK], self._held[_BLOCK:]
        block = b"".join(records)
        self._file.write(signed(len(records)) + signed(len(block)) + block + self._sync)


class AvroFile(Format):
    """Avro object files; records inside records are read as objects are in JSON."""

    name: ClassVar[str] = "avro"
    suffixes: ClassVar[tuple[str, ...]] = (".avro",)
    continues: ClassVar[bool] = True

    def read(self, path: Path, at_once: int, encoding: str | None = None) -> Iterator[Part]:
        """Yield the rows of a file."""
        try:
            avro = fastavro()
        except StreamAnonError as error:
            raise TableError(str(error)) from None
        size, number = max(path.stat().st_size, 1), 1
        with path.open("rb") as file:
            try:
                rows = iter(avro.reader(file))
                while part := [_payload(row) for row in islice(rows, at_once)]:
                    numbers = np.arange(number, number + len(part))
                    yield Part(number, numbers, part, min(file.tell() / size, 1.0))
                    number += len(part)
                yield Part(number, np.empty(0, dtype=np.int64), [], 1.0)
            except (OSError, MemoryError):
                raise
            except Exception:  # whatever a library makes of another kind of file
                raise TableError(f"{path}: not an Avro file, or cut off") from None

    def writer(self, file: IO[bytes], quote_formulas: bool = True) -> AvroFileWriter:
        """Return a writer of blocks."""
        return AvroFileWriter(file)


def _payload(row: Any) -> Payload:
    return _as_json(row) if isinstance(row, dict) else Reject.NOT_OBJECT


def _as_json(value: Any) -> Any:
    """Return a value as JSON would hold it, without nulls in objects."""
    if isinstance(value, dict):
        return {name: _as_json(cell) for name, cell in value.items() if cell is not None}
    return plain(value)


def _bytes(data: bytes) -> bytes:
    return signed(len(data)) + data
