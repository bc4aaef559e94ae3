"""The status server: the live page, /api/status, /metrics, /livez and /readyz over HTTP; requests change nothing.

On the loopback by default. Whoever reaches the port can take little: connections are few and short, requests small,
threads a handful. Open pages are counted apart, so that they do not take the place of whoever asks for the health.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec

from stream_anon.errors import StreamAnonError
from stream_anon.observe.answers import Answer, Answers, Request
from stream_anon.observe.live.status import Status
from stream_anon.observe.live.streams import Streams
from stream_anon.observe.live.web import FILES, HEADERS, from_here

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_log = logging.getLogger("stream_anon.status")

CONNECTIONS = 64
"""At once. One more closes the one that has been open for longest: who asks properly is answered at once."""

_REQUEST_SECONDS = 5.0  # to send a request, and again to take the answer
_LONGEST_REQUEST = 8_192  # bytes of request line and headers
_QUEUE = 1_024  # connections the system keeps until they are looked at; beyond it, it lets them wait for seconds
_AT_ONCE = 16  # connections taken from there before some are closed again: each takes a descriptor that others need
_THREADS = 4  # that make answers: those of several workers ask each of them
_STATUS, _EVENTS = "/api/status", "/api/events"
_OF_THE_PAGE = frozenset({*FILES, _STATUS, _EVENTS, "/api/schema"})
_ELSEWHERE = Answer(HTTPStatus.MISDIRECTED_REQUEST, b"ask for it by its address: http://127.0.0.1 or localhost\n")


class StatusServer:
    """A server in its own thread. `live` is false when the loop hangs, `ready` while a partition is left out.

    What `warning` says, if anything, stands below the answer of `/readyz`, and `why` below that of either if it is no.
    Without a `status` there is no page.
    """

    def __init__(
        self,
        registry: CollectorRegistry | None,
        live: Callable[[], bool],
        ready: Callable[[], bool],
        host: str = "127.0.0.1",
        port: int = 0,
        warning: Callable[[], str] = str,
        why: Callable[[], str] = str,
        status: Callable[[], Status] | None = None,
    ) -> None:
        self._answers = Answers(registry, live, ready, warning, why)
        self._streams = None if status is None else Streams(lambda: msgspec.json.encode(status()))
        self._read = threading.Event()
        self._open: dict[asyncio.StreamWriter, None] = {}  # in order of arrival
        self._host = host
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

    @property
    def url(self) -> str:
        """The address of the live page, as a browser on this machine takes it."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - compared, not bound to
        return f"http://{everywhere.get(self._host, self._host)}:{self._port}/"

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
        sending = None if self._streams is None else asyncio.create_task(self._streams.run())
        self._started.set()
        await self._stopped.wait()
        server.close()
        if sending is not None and self._streams is not None:
            sending.cancel()
            await self._streams.end()

    async def _answer_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, answer it, and hang up; a slow or oversized request gets no answer."""
        if len(self._open) >= CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                request = Request.of(await reader.readuntil(b"\r\n\r\n"))
            if self._is_stream(request) and self._streams is not None:
                del self._open[writer]
                head = _head(HTTPStatus.OK, "text/event-stream; charset=utf-8", None)
                await self._streams.follow(reader, writer, head)
                return
            read = self._read
            answer = await self._answer(request)
            async with asyncio.timeout(_REQUEST_SECONDS):
                writer.write(_head(answer.status, answer.kind, len(answer.body)) + answer.body)
                writer.close()
                await writer.wait_closed()
            if request.path == "/metrics":
                read.set()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, KeyError):
            writer.transport.abort()
        except Exception as error:  # an answer could not be made: the connection must not stay open for it
            _log.error("a request could not be answered", extra={"error": type(error).__name__})
            writer.transport.abort()
        finally:
            self._open.pop(writer, None)

    def _is_stream(self, request: Request) -> bool:
        """Tell whether a request is that of an open page, and may be taken."""
        asked = request.method == "GET" and request.path == _EVENTS and self._streams is not None
        return asked and self._meant(request) and not (self._streams is None or self._streams.full)

    def _meant(self, request: Request) -> bool:
        return from_here(request.headers.get("host", ""), self._host)

    async def _answer(self, request: Request) -> Answer:
        if request.path in _OF_THE_PAGE:
            if self._streams is None:
                return Answer(HTTPStatus.NOT_FOUND, b"not found\n")
            if not self._meant(request):
                return _ELSEWHERE
            if request.path == _EVENTS and request.method == "GET":
                return Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"too many pages are open\n")
            if request.path == _STATUS and request.method == "GET":
                return Answer(HTTPStatus.OK, await self._streams.measure(), "application/json")
        return await asyncio.get_running_loop().run_in_executor(None, self._answers.to, request)


def _head(status: HTTPStatus, kind: str, length: int | None) -> bytes:
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Type: {kind}"]
    lines += [] if length is None else [f"Content-Length: {length}"]
    lines += [f"{name}: {value}" for name, value in HEADERS.items()]
    return ("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode()
