"""Packed files (gzip, zstd): unpacked while they are read and packed while they are written, never whole in memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from typing_extensions import Buffer

from stream_anon.core.gate import Group
from stream_anon.formats.format import RecordWriter, TableError

PACKED: dict[str, str] = {".gz": "gzip", ".zst": "zstd"}
"""The ways of packing by the last suffix of a name; the one before it says what is packed."""

_PIECE = 1 << 16
"""Bytes that are packed at once: always as many, so that the packed bytes depend on nothing but the plain ones."""

_WINDOW = 27
"""The power of two of the largest window that is unpacked, 128 MiB: what the zstd command takes without being told."""


class BrokenArchiveError(TableError):
    """Packed data end too early, or are not what their name says."""


class Readable(Protocol):
    """The part of a binary file that readers of lines need."""

    def read(self, size: int = -1, /) -> bytes:
        """Return up to so many bytes, none at the end."""
        ...


class Opened:
    """A file that is read as if it were not packed. `reached` is the share of its bytes on the disk that were read."""

    def __init__(self, plain: Readable, raw: IO[bytes], size: int, kind: str) -> None:
        self._plain, self._raw, self._size, self._kind = plain, raw, max(size, 1), kind
        self._broken = (zstd().ZstdError,) if kind == "zstd" else (zlib.error, gzip.BadGzipFile)

    @property
    def reached(self) -> float:
        """The share of the file that was read, from 0 to 1."""
        return min(self._raw.tell() / self._size, 1.0)

    def read(self, size: int = -1, /) -> bytes:
        """Return up to so many plain bytes, none at the end; raise BrokenArchiveError where they end too early."""
        try:
            return self._plain.read(size)
        except EOFError:
            raise BrokenArchiveError(f"the {self._kind} data are cut off") from None
        except self._broken:
            raise BrokenArchiveError(f"the {self._kind} data are damaged, or of another kind") from None


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """Open a file for reading, unpacked if its name says that it is packed."""
    kind = PACKED.get(path.suffix.lower(), "")
    size = path.stat().st_size
    with path.open("rb", buffering=0) as raw:
        plain: Any = raw
        if kind == "gzip":
            plain = gzip.GzipFile(fileobj=raw, mode="rb")
        elif kind == "zstd":
            library = zstd()
            options = {library.DecompressionParameter.window_log_max: _WINDOW}
            plain = library.ZstdFile(raw, "rb", options=options)
        if kind and path.is_file() and not size:
            raise TableError(f"{path}: the {kind} data are cut off: the file is empty")
        yield Opened(plain, raw, size, kind)


def bare(path: Path) -> Path:
    """Return the name that a file has when it is unpacked.

    >>> bare(Path("visits.csv.gz")).name, bare(Path("visits.csv")).name
    ('visits.csv', 'visits.csv')
    """
    return path.with_suffix("") if path.suffix.lower() in PACKED else path


class Packed(io.RawIOBase):
    """A file that packs what is written to it into another one, which stays open.

    The same bytes are packed alike however they are cut into writes, so that an interrupted file can be continued.
    """

    def __init__(self, file: IO[bytes], suffix: str) -> None:
        self._file = file
        self._waiting = bytearray()
        self._pack, self._finish = _packer(PACKED[suffix])

    def writable(self) -> bool:
        """Return true: more can always be packed."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Pack whole pieces; what is left over waits."""
        new = memoryview(data).cast("B")
        self._waiting += new
        whole = len(self._waiting) - len(self._waiting) % _PIECE
        for at in range(0, whole, _PIECE):
            self._file.write(self._pack(bytes(self._waiting[at : at + _PIECE])))
        del self._waiting[:whole]
        return len(new)

    def finish(self) -> None:
        """Pack the rest and write the end of the archive."""
        self._file.write(self._pack(bytes(self._waiting)) + self._finish())
        self._waiting.clear()


class PackedWriter:
    """A writer of groups into a packed file, in whatever format is inside."""

    def __init__(self, packed: Packed, inside: RecordWriter) -> None:
        self._packed, self._inside = packed, inside

    def write(self, groups: Sequence[Group]) -> None:
        """Write the records of some groups."""
        self._inside.write(groups)

    def close(self) -> None:
        """Finish the format inside, then the archive."""
        self._inside.close()
        self._packed.finish()


def _packer(kind: str) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    if kind == "gzip":
        made = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)  # with no name and no time in its head
        return made.compress, made.flush
    library = zstd()
    options = {library.CompressionParameter.compression_level: 3, library.CompressionParameter.checksum_flag: 1}
    packer = library.ZstdCompressor(options=options)
    return packer.compress, packer.flush


def zstd() -> Any:
    """Import what packs and unpacks zstd: a part of Python from 3.14 on, a package before."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from backports import zstd  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise TableError("zstd needs a package: pip install 'stream-anon[zstd]'") from None
    return zstd
