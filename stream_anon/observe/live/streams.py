"""Server-sent events: one message a second, made once and sent to every open page."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_log = logging.getLogger("stream_anon.status")

STREAMS = 40
"""Open pages at once; one more is answered 503, and asks now and then by itself."""

_EVERY = 1.0  # seconds between messages
_UNREAD = 1 << 18  # bytes that a page may leave unread before it is hung up on


class Streams:
    """The open pages of a server, which sends to none while there is none: then nothing is measured either.

    `make` returns the status as JSON. It has a thread of its own: where it waits for workers, others do not.
    """

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._writers: set[asyncio.StreamWriter] = set()
        self._latest = b""
        self._looked_at = asyncio.Event()
        self._executor = ThreadPoolExecutor(1, "live")
        self._measuring: asyncio.Future[bytes] | None = None

    @property
    def full(self) -> bool:
        """Whether no more pages are taken."""
        return len(self._writers) >= STREAMS

    def __len__(self) -> int:
        return len(self._writers)

    async def measure(self) -> bytes:
        """Return the status as it is now; who asks while it is being measured gets the same one."""
        if self._measuring is None or self._measuring.done():
            self._measuring = asyncio.get_running_loop().run_in_executor(self._executor, self._make)
        return await asyncio.shield(self._measuring)

    async def follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        """Send messages to a page until it hangs up; it has nothing more to say itself."""
        writer.write(head + b"retry: 2000\n\n" + (self._latest if self._writers else b""))
        self._writers.add(writer)
        self._looked_at.set()
        try:
            await reader.read(1)
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def run(self) -> None:
        """Send a message a second while somebody looks."""
        while True:
            await self._looked_at.wait()
            try:
                self._latest = _message(await self.measure())
            except Exception as error:  # a page without news is better than a status port without answers
                _log.error("the status could not be measured", extra={"error": type(error).__name__})
            self._send(self._latest)
            await asyncio.sleep(_EVERY)
            if not self._writers:
                self._looked_at.clear()

    async def end(self) -> None:
        """Tell all pages that the run is over, with its last state."""
        if self._writers:
            self._send(_message(await self.measure()) + b"event: end\ndata: {}\n\n")
            for writer in self._writers:
                writer.close()
        self._executor.shutdown(wait=False)

    def _send(self, message: bytes) -> None:
        for writer in list(self._writers):
            if writer.transport.get_write_buffer_size() > _UNREAD:
                writer.transport.abort()
            elif not writer.transport.is_closing():
                writer.write(message)


def _message(status: bytes) -> bytes:
    return b"data: " + status + b"\n\n"
