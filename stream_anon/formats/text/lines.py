"""Read lines from a descriptor or a file as they arrive, without waiting for more; overlong lines are not kept."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable
from functools import partial

from stream_anon.core.decode import LineCount, Payload, Reject
from stream_anon.errors import StreamAnonError
from stream_anon.formats.packing import Readable
from stream_anon.formats.text.encodings import MARK, ToUtf8, to_utf8

CHUNK = 1 << 18
LINE_LIMIT = 1 << 20
"""Bytes. Kafka's default limit for a record; what is longer is no record."""

_BOM = b"\xef\xbb\xbf"


class InputError(StreamAnonError):
    """The input ended by a failure, not by its end."""


class Lines:
    """A reader of complete lines with their numbers, from 1; a line beyond the limit is `Reject.TOO_LARGE`.

    Of an overlong line no more than the limit and a chunk is ever held. Blank lines are counted and skipped unless
    `keep_blank`, a byte order mark at the very beginning is dropped, the last line needs no newline. Lines are UTF-8,
    whatever the `encoding` of the text is; `name` is what errors call it.
    """

    def __init__(
        self,
        source: int | Readable,
        limit: int = LINE_LIMIT,
        keep_blank: bool = False,
        encoding: str | None = None,
        name: str = "the input",
    ) -> None:
        self.ended = False
        self.count = LineCount()
        self.limit = limit
        self._next: Callable[[int], bytes] = partial(os.read, source) if isinstance(source, int) else source.read
        self._keep_blank = keep_blank
        self._encoding, self._name = encoding, name
        self._begin: bytes | None = b""  # until it is known which encoding it is
        self._to_utf8: ToUtf8 | None = None
        self._parts: list[bytes] = []  # the beginning of a line whose end has not come yet
        self._size = 0
        self._selector = _selector(source) if isinstance(source, int) else None

    def read(self, timeout: float | None) -> list[tuple[int, Payload]]:
        """Return what has arrived by now, or within `timeout` seconds if nothing has; wait for ever if None."""
        if self.ended or (self._selector is not None and not self._selector.select(timeout)):
            return []
        try:
            chunk = self._next(CHUNK if self._begin is None else MARK - len(self._begin))
        except BlockingIOError:  # somebody else was quicker on a shared descriptor
            return []
        except OSError as error:
            raise InputError(f"the input cannot be read: {error.strerror}") from None
        text = chunk
        if self._begin is not None:
            text = self._begin + chunk
            if chunk and len(text) < MARK:
                self._begin = text
                return []
            self._begin, self._to_utf8 = None, to_utf8(text, self._encoding, self._name)
        if self._to_utf8 is not None:
            text = self._to_utf8(text)
        self.ended = not chunk and not text
        *ends, rest = text.split(b"\n")
        if self.ended and self._size:
            ends = [b""]  # of the last line, which needs no newline
        lines: list[bytes | Reject] = [Reject.TOO_LARGE if len(end) > self.limit else end for end in ends]
        if ends and self._size:  # the first of them began in an earlier chunk
            whole = self._size + len(ends[0]) <= self.limit
            lines[0] = b"".join([*self._parts, ends[0]]) if whole else Reject.TOO_LARGE
        if ends:
            self._parts, self._size = [], 0
        self._size += len(rest)
        if self._size > self.limit:
            self._parts = []
        elif rest:
            self._parts.append(rest)
        if self.count.read == 0 and lines and isinstance(lines[0], bytes):
            lines[0] = lines[0].removeprefix(_BOM)
        numbered: list[tuple[int, Payload]] = [
            (number, line) for number, line in enumerate(lines, self.count.read + 1) if self._keep_blank or line.strip()
        ]
        self.count.read += len(lines)
        self.count.blank += len(lines) - len(numbered)
        return numbered


def _selector(descriptor: int) -> selectors.BaseSelector | None:
    """Return what waits for a descriptor, None for a regular file: it is always ready and cannot be waited for."""
    selector = selectors.DefaultSelector()
    try:
        selector.register(descriptor, selectors.EVENT_READ)
    except (OSError, ValueError):
        selector.close()
        return None
    return selector
