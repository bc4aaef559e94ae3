"""The status server: /metrics, /livez and /readyz over HTTP, on the loopback by default; requests change nothing.

Whoever reaches the port can take little: connections are few and short, requests small, threads a handful.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from stream_anon.errors import StreamAnonError

CONNECTIONS = 64
"""At once. One more closes the one that has been open for longest: who asks properly is answered at once."""

_REQUEST_SECONDS = 5.0  # to send a request, and again to take the answer
_LONGEST_REQUEST = 8_192  # bytes of request line and headers
_QUEUE = 1_024  # connections the system keeps until they are looked at; beyond it, it lets them wait for seconds
_AT_ONCE = 16  # connections taken from there before some are closed again: each takes a descriptor that others need
_THREADS = 4  # that make answers: those of several workers ask each of them
_Answer = tuple[HTTPStatus, bytes, str]


class StatusServer:
    """A server in its own thread. `live` is false when the loop hangs, `ready` while a partition is left out.

    What `warning` says, if anything, stands below the answer of `/readyz`, and `why` below that of either if it is no.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        live: Callable[[], bool],
        ready: Callable[[], bool],
        host: str = "127.0.0.1",
        port: int = 0,
        warning: Callable[[], str] = str,
        why: Callable[[], str] = str,
    ) -> None:
        self._warning, self._why = warning, why
        self._registry, self._live, self._ready = registry, live, ready
        self._read = threading.Event()
        self._open: dict[asyncio.StreamWriter, None] = {}  # in order of arrival
        try:
            self._socket = socket.create_server((host, port), backlog=_QUEUE)
        except OSError as error:
            taken = f"the status port {host}:{port} is not available: {error.strerror}"
            raise StreamAnonError(f"{taken}; choose another with --status-port") from None
        self._port = int(self._socket.getsockname()[1])
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started, self._stopped = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="status", daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    def start(self) -> StatusServer:
        """Start answering requests and return the server."""
        self._thread.start()
        self._started.wait(_REQUEST_SECONDS)
        return self

    def await_reading(self, timeout: float) -> bool:
        """Wait until somebody has read the current metrics, for at most this many seconds."""
        self._read = threading.Event()
        return self._read.wait(timeout)

    def close(self) -> None:
        """Stop answering requests and end the thread."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(_REQUEST_SECONDS)
        self._socket.close()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, "answer"))
        server = await asyncio.start_server(
            self._answer_request, sock=self._socket, limit=_LONGEST_REQUEST, backlog=_AT_ONCE
        )
        self._socket.listen(_QUEUE)  # for asyncio one number is both: how many may queue, and how many it takes at once
        self._started.set()
        await self._stopped.wait()
        server.close()

    async def _answer_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, answer it, and hang up; a slow or oversized request gets no answer."""
        if len(self._open) >= CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
            read = self._read
            status, body, kind = await asyncio.get_running_loop().run_in_executor(None, self._answer, request)
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            async with asyncio.timeout(_REQUEST_SECONDS):
                writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
                writer.close()
                await writer.wait_closed()
            if request.startswith(b"GET /metrics"):
                read.set()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            self._open.pop(writer, None)

    def _answer(self, request: bytes) -> _Answer:
        line, *headers = request.decode("latin-1").split("\r\n")
        method, _, rest = line.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method != "GET":
            return HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n", "text/plain"
        if path == "/metrics":
            accept = [value for name, _, value in (h.partition(":") for h in headers) if name.lower() == "accept"]
            try:
                encode, kind = choose_encoder(",".join(accept))
            except (TypeError, ValueError):  # a version that is no number: the client library compares it with one
                encode, kind = choose_encoder("")
            return HTTPStatus.OK, encode(self._registry), kind
        if path in ("/livez", "/readyz"):
            good = self._live() and (path == "/livez" or self._ready())
            warning = self._warning() if path == "/readyz" else ""
            why = "" if good else self._why()
            body = ("ok\n" if good else "no\n") + (f"{why}\n" if why else "")
            body += f"warning: {warning}\n" if warning else ""
            status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
            return status, body.encode(), "text/plain"
        return HTTPStatus.NOT_FOUND, b"not found\n", "text/plain"
