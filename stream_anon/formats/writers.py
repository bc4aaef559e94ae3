"""Write groups to a file that appears only when it is complete, in the format that the suffix of its name says."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from stream_anon.formats.format import Format, RecordWriter, TableError
from stream_anon.formats.packing import PACKED, Packed, PackedWriter
from stream_anon.formats.tables import format_of

__all__ = [
    "RecordWriter",
    "keep_apart",
    "new_file",
    "refuse_to_overwrite",
    "refuse_what_cannot_be_written",
    "writer_for",
]


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
        raise TableError(f"{path}: cannot be written: there is no folder {path.parent}: create it, or name another")
    if path.exists() and not overwrite:
        raise TableError(f"{path}: already exists; name another file, or pass --force")


def keep_apart(read: Sequence[Path | None], written: Sequence[Path | None]) -> None:
    """Raise TableError if a file that is read would be written too, or two outputs are one file, whatever its names."""
    known = [path for path in read if path is not None]
    for path in filter(None, written):
        if any(_are_one(path, other) for other in known):
            raise TableError(f"{path}: this command reads or writes it already; name another file")
        known.append(path)


def _are_one(path: Path, other: Path) -> bool:
    if path.exists() and other.exists():
        return path.samefile(other)
    return os.path.realpath(path) == os.path.realpath(other)


def refuse_what_cannot_be_written(path: Path) -> None:
    """Raise TableError if files of that name cannot be written: before the work, not after it."""
    made = format_of(path)
    if type(made).writer is Format.writer:
        raise TableError(f"{path}: {made.name} files can be read, not written")


def writer_for(path: Path, file: IO[bytes], quote_formulas: bool = True) -> RecordWriter:
    """Return a writer in the format that the name of the file says, packed if it says so."""
    found, suffix = format_of(path), path.suffix.lower()
    if suffix not in PACKED:
        return found.writer(file, quote_formulas)
    packed = Packed(file, suffix)
    return PackedWriter(packed, found.writer(cast(IO[bytes], packed), quote_formulas))
