"""Open files to be audited, packed (gzip, zstd) or not: the auditor unpacks by itself, a piece at a time.

Text that is not UTF-8 is read as if it were: it is in what its byte order mark says, or what somebody named.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from stream_anon.auditor.reading.formats.base import Unreadable

PACKED = (".gz", ".zst")
_PIECE = 1 << 16
_WINDOW = 27  # 128 MiB, as the zstd command allows by itself


def suffix_of(path: Path) -> str:
    """Return the suffix that names the kind of a file, in lower case, without that of its packing.

    >>> suffix_of(Path("a.csv.gz")), suffix_of(Path("a.JSON"))
    ('.csv', '.json')
    """
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix in PACKED else suffix


class _Utf8(io.RawIOBase):
    """The text of a file in another encoding, as UTF-8."""

    def __init__(self, path: Path, file: BinaryIO, encoding: str) -> None:
        self._path, self._file, self._encoding = path, file, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = b""
        self._lines = 1

    def readable(self) -> bool:
        """Return true: it is there to be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as far as there is text, and return how many bytes it got."""
        while not self._ready:
            line = self._file.readline(_PIECE)
            try:
                text = self._decoder.decode(line, final=not line)
            except UnicodeError:
                why = f"line {self._lines} is not text in {self._encoding}: name its encoding, or save it as UTF-8"
                raise Unreadable(f"{self._path}: {why}") from None
            self._lines += text.count("\n")
            self._ready = text.encode("utf-8", "surrogatepass")
            if not line:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


@contextmanager
def open_file(path: Path, encoding: str | None = None) -> Iterator[BinaryIO]:
    """Open a file of text, unpacked and in UTF-8; `encoding` is what it is in if it has no byte order mark."""
    with _unpacked(path) as plain:
        file = plain if isinstance(plain, io.BufferedReader) else io.BufferedReader(cast(Any, plain))
        begin = file.peek(4)
        if begin.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            encoding = "utf-32"
        elif begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16"
        elif encoding and (begin.startswith(codecs.BOM_UTF8) or codecs.lookup(encoding).name == "utf-8"):
            encoding = None
        yield io.BufferedReader(_Utf8(path, file, encoding)) if encoding else file


@contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacked; what breaks while it is read is told as Unreadable."""
    with path.open("rb") as raw:
        match path.suffix.lower():
            case ".gz":
                broken: tuple[type[Exception], ...] = (zlib.error, gzip.BadGzipFile)
                plain: Any = gzip.GzipFile(fileobj=raw, mode="rb")
            case ".zst":
                library = _zstd()
                broken = (library.ZstdError,)
                limit = {library.DecompressionParameter.window_log_max: _WINDOW}
                plain = library.ZstdFile(raw, "rb", options=limit)
            case _:
                yield raw
                return
        if not raw.peek(1):
            raise Unreadable(f"{path}: the packed file is empty")
        try:
            yield cast(BinaryIO, plain)
        except EOFError:
            raise Unreadable(f"{path}: the packed file is cut off") from None
        except broken:
            raise Unreadable(f"{path}: the packed file is damaged, or of another kind") from None


def _zstd() -> Any:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from backports import zstd  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ImportError:
            raise Unreadable("zstd needs a package: pip install 'stream-anon[zstd]'") from None
    return zstd
