"""Encoded rows on disk: what waits for its part. The folder is its owner's alone, and holds values as they came."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.local.parts.place import SpillError

_JSON = msgspec.json.Encoder()


class _Chunk(msgspec.Struct, array_like=True):
    """Some rows: arrays as bytes, None for a guard or psf that nobody has, values as JSON by column."""

    rows: int
    qi: bytes
    sensitive: bytes
    guard: bytes | None
    psf: bytes | None
    subject: bytes
    ref: bytes
    values: list[bytes]


_WRITE, _READ = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(_Chunk)


class Spill:
    """Files of rows in one folder, by name; rows are added at the end and read in the order they came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, BinaryIO] = {}

    def add(self, name: str, rows: Batch) -> None:
        """Append rows to a file."""
        if not len(rows):
            return
        if name not in self._files:
            self._files[name] = self._path(name).open("ab")
        encoded = _WRITE.encode(_packed(rows))
        self._files[name].write(len(encoded).to_bytes(8, "little") + encoded)

    def close(self) -> None:
        """Finish all files that were written."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def read(self, name: str) -> Iterator[Batch]:
        """Yield the rows of a file, some at a time."""
        if not self._path(name).exists():
            return
        with self._path(name).open("rb") as file:
            while size := file.read(8):
                try:
                    yield _unpacked(_READ.decode(file.read(int.from_bytes(size, "little"))))
                except (msgspec.DecodeError, ValueError):
                    raise SpillError(f"{self._path(name)}: is damaged; remove the folder, and begin again") from None

    def remove(self, name: str) -> None:
        """Delete a file that is no longer needed."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.rows"


def _packed(rows: Batch) -> _Chunk:
    return _Chunk(
        len(rows),
        rows.qi.tobytes(),
        rows.sensitive.tobytes(),
        None if (rows.guard == NO_GUARD).all() else rows.guard.tobytes(),
        rows.psf.tobytes() if rows.psf.any() else None,
        rows.subject.tobytes(),
        rows.ref.tobytes(),
        [_JSON.encode(column) for column in rows.values.T.tolist()],
    )


def _unpacked(chunk: _Chunk) -> Batch:
    n = chunk.rows
    sensitive = _ints(chunk.sensitive, n)
    values = np.empty((n, len(chunk.values)), dtype=object)
    for place, column in enumerate(chunk.values):
        values[:, place] = np.fromiter(msgspec.json.decode(column), object, n)
    return Batch(
        qi=_ints(chunk.qi, n),
        sensitive=sensitive,
        guard=np.full(sensitive.shape, NO_GUARD, dtype=np.int64) if chunk.guard is None else _ints(chunk.guard, n),
        psf=np.zeros(sensitive.shape, dtype=np.int64) if chunk.psf is None else _ints(chunk.psf, n),
        subject=_ints(chunk.subject, n)[:, 0],
        arrived=np.zeros(n),
        ref=_ints(chunk.ref, n),
        serial=np.full(n, UNNUMBERED, dtype=np.int64),
        values=values,
    )


def _ints(data: bytes, rows: int) -> Ints:
    return np.frombuffer(data, dtype=np.int64).reshape(rows, len(data) // (8 * rows)).copy()
