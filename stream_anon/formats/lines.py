"""Read lines from a file descriptor as they arrive, without waiting for more; overlong lines are not kept."""

from __future__ import annotations

import os
import selectors

from stream_anon.core.decode import LineCount, Payload, Reject
from stream_anon.errors import StreamAnonError

CHUNK = 1 << 18
LINE_LIMIT = 1 << 20
"""Bytes. Kafka's default limit for a record; what is longer is no record."""

_BOM = b"\xef\xbb\xbf"


class InputError(StreamAnonError):
    """The input ended by a failure, not by its end."""


class Lines:
    """A reader of complete lines with their numbers, from 1; a line beyond the limit is `Reject.TOO_LARGE`.

    Of an overlong line no more than the limit and a chunk is ever held. Blank lines are counted and skipped unless
    `keep_blank`, a byte order mark at the very beginning is dropped, the last line needs no newline.
    """

    def __init__(self, descriptor: int, limit: int = LINE_LIMIT, keep_blank: bool = False) -> None:
        self.ended = False
        self.count = LineCount()
        self.limit = limit
        self.bytes = 0  # read so far
        self._descriptor = descriptor
        self._keep_blank = keep_blank
        self._parts: list[bytes] = []  # the beginning of a line whose end has not come yet
        self._size = 0
        self._selector: selectors.BaseSelector | None = selectors.DefaultSelector()
        try:
            self._selector.register(descriptor, selectors.EVENT_READ)
        except (OSError, ValueError):  # a regular file is always ready and cannot be waited for
            self._selector.close()
            self._selector = None

    def read(self, timeout: float | None) -> list[tuple[int, Payload]]:
        """Return what has arrived by now, or within `timeout` seconds if nothing has; wait for ever if None."""
        if self.ended or (self._selector is not None and not self._selector.select(timeout)):
            return []
        try:
            chunk = os.read(self._descriptor, CHUNK)
        except BlockingIOError:  # somebody else was quicker on a shared descriptor
            return []
        except OSError as error:
            raise InputError(f"the input cannot be read: {error.strerror}") from None
        self.bytes += len(chunk)
        *ends, rest = chunk.split(b"\n")
        lines = [line for end in ends if (line := self._close(end)) is not None]
        if chunk:
            self._keep(rest)
        else:
            self.ended = True
            last = self._close(b"") if self._size else None
            lines += [last] if last is not None else []
        return lines

    def _keep(self, part: bytes) -> None:
        """Remember the beginning of a line; of one that is too long already, only its size."""
        self._size += len(part)
        if self._size > self.limit:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _close(self, end: bytes) -> tuple[int, Payload] | None:
        """Return the line that ends here with its number, None if it is blank and not wanted."""
        self.count.read += 1
        number = self.count.read
        self._keep(end)
        size, line = self._size, b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if size > self.limit:
            return number, Reject.TOO_LARGE
        if number == 1:
            line = line.removeprefix(_BOM)
        if self._keep_blank or line.strip():
            return number, line
        self.count.blank += 1
        return None
