"""Resume an interrupted output file: verify that what is there is the beginning of what is written, then append."""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from typing_extensions import Buffer

from stream_anon.formats.tables import TableError
from stream_anon.formats.writers import refuse_to_overwrite

PARTIAL = ".partial"


class Resumed(io.RawIOBase):
    """A file that compares what is written with what is already there, byte by byte, and appends only the rest.

    Whatever wrote the file before, an interrupted run of the same command included, wrote a beginning of what comes
    now, or the run ends. So no record is written twice and none differently, without any note of how far it came.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self.left = os.fstat(file.fileno()).st_size
        """Bytes that are there and were not compared yet."""

    def writable(self) -> bool:
        """Return true: the file can always be written."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte: writers of Parquet ask for it."""
        return self._file.tell()

    def write(self, data: Buffer, /) -> int:
        """Compare with what is there, then write the rest."""
        new = memoryview(data).cast("B")
        old = self._file.read(min(len(new), self.left))
        if new[: len(old)] != old:
            raise TableError(
                f"{self._path}: was written from other data, another policy or another version; "
                "remove it to start again, and withdraw what was taken from it"
            )
        self.left -= len(old)
        self._file.write(new[len(old) :])
        return len(new)


def _claim(file: BinaryIO, path: Path) -> None:
    """Lock the file for this run, or raise TableError: two runs would write into each other's records."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TableError(f"{path}: another run is writing it; wait for its end, or name another file") from None


@contextmanager
def resumed_file(path: Path) -> Iterator[Resumed]:
    """Open a file that grows as `PATH.partial` and is renamed at the end; continue an earlier, interrupted one."""
    refuse_to_overwrite(path)
    partial = path.with_name(path.name + PARTIAL)
    try:
        partial.touch()
        with partial.open("r+b") as file:
            _claim(file, path)
            resumed = Resumed(file, partial)
            yield resumed
            if resumed.left:
                raise TableError(f"{partial}: holds more than this run wrote; remove it to start again")
            file.flush()
            os.fsync(file.fileno())
        refuse_to_overwrite(path)
        partial.replace(path)
    except OSError as error:
        raise TableError(f"{path}: cannot be written: {error.strerror}") from None
