"""Encoded rows on disk: what waits for its part. The folder is its owner's alone, and holds values as they came."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from stream_anon.core.batch import Batch
from stream_anon.local.parts.packed import packed, unpacked
from stream_anon.local.parts.place import SpillError


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
        encoded = packed(rows)
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
                    yield unpacked(file.read(int.from_bytes(size, "little")))
                except (msgspec.DecodeError, ValueError):
                    raise SpillError(f"{self._path(name)}: is damaged; remove the folder, and begin again") from None

    def remove(self, name: str) -> None:
        """Delete a file that is no longer needed."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.rows"
