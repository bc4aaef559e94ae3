"""Lines from a file descriptor as they come, without waiting for more than is there; overlong lines are thrown away."""

from __future__ import annotations

import os
import selectors

from stream_anon.core.decode import Payload, Reject

CHUNK = 1 << 18
LINE_LIMIT = 1 << 20
"""Bytes. Kafka's default limit for a record; what is longer is no record."""


class Lines:
    """Reads complete lines with their numbers, from 1; a line beyond the limit is `Reject.TOO_LARGE`.

    Blank lines are counted and skipped. The last line needs no newline.
    """

    def __init__(self, descriptor: int, limit: int = LINE_LIMIT) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._partial = b""
        self._skipping = False
        self.ended = False
        self._number = 0
        self._selector = selectors.DefaultSelector()
        try:
            self._selector.register(descriptor, selectors.EVENT_READ)
        except (PermissionError, ValueError):  # a regular file is always ready and cannot be waited for
            self._selector.close()
            self._waits = False
        else:
            self._waits = True

    def read(self, timeout: float | None) -> list[tuple[int, Payload]]:
        """What has arrived by now, or within `timeout` seconds if nothing has; for ever if None."""
        if self.ended or (self._waits and not self._selector.select(timeout)):
            return []
        chunk = os.read(self._descriptor, CHUNK)
        if not chunk:
            self.ended = True
            complete, self._partial = [self._partial], b""
        else:
            *complete, self._partial = (self._partial + chunk).split(b"\n")
        lines: list[tuple[int, Payload]] = []
        for line in complete:
            self._number += 1
            if self._skipping or len(line) > self._limit:
                self._skipping = False
                lines.append((self._number, Reject.TOO_LARGE))
            elif line.strip():
                lines.append((self._number, line))
        if len(self._partial) > self._limit:
            self._skipping, self._partial = True, b""
        return lines
