"""Open files to be audited, packed (gzip, zstd) or not: the auditor unpacks by itself, a piece at a time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from stream_anon.auditor.reading.formats.base import Unreadable

PACKED = (".gz", ".zst")
_WINDOW = 27  # 128 MiB, as the zstd command allows by itself


def suffix_of(path: Path) -> str:
    """Return the suffix that names the kind of a file, in lower case, without that of its packing.

    >>> suffix_of(Path("a.csv.gz")), suffix_of(Path("a.JSON"))
    ('.csv', '.json')
    """
    suffix = path.suffix.lower()
    return path.with_suffix("").suffix.lower() if suffix in PACKED else suffix


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
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
