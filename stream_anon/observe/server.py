"""/metrics, /livez and /readyz over HTTP, on the loopback unless told otherwise; asking changes nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from stream_anon.errors import StreamAnonError


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Somebody who hangs up early is no news either."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class StatusServer:
    """Serves in a thread of its own. `live` is false when the loop hangs, `ready` while a partition is left out."""

    def __init__(
        self,
        registry: CollectorRegistry,
        live: Callable[[], bool],
        ready: Callable[[], bool],
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        status = self
        self._read = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/metrics":
                    encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                    read = status._read
                    self._answer(200, encode(registry), content_type)
                    read.set()
                elif path in ("/livez", "/readyz"):
                    good = live() if path == "/livez" else live() and ready()
                    self._answer(200 if good else 503, b"ok\n" if good else b"no\n", "text/plain")
                else:
                    self._answer(404, b"not found\n", "text/plain")

            def _answer(self, status: int, body: bytes, content_type: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                """Say nothing: a request is not news."""

        try:
            self._server = _Server((host, port), Handler)
        except OSError as error:
            why = f"the status port {host}:{port} cannot be had: {error.strerror}"
            raise StreamAnonError(f"{why}; choose another with --status-port") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="status", daemon=True)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def start(self) -> StatusServer:
        """Begin to answer."""
        self._thread.start()
        return self

    def await_reading(self, timeout: float) -> bool:
        """Wait until somebody has asked for the metrics as they are now, at most so many seconds."""
        self._read = threading.Event()
        return self._read.wait(timeout)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
