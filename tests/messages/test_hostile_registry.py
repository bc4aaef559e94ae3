"""A registry that answers wrongly, or without end: it is told in one line, without credentials, and soon."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from stream_anon.formats.messages.registry import Access, Registry, RegistryAwayError, RegistryError

ANSWERS: dict[str, Any] = {
    "/schemas/ids/1": {"schema": "{}", "references": [{"name": "a", "subject": "a", "version": 1}]},
    "/subjects/a/versions/1": {"schema": "{}", "references": [{"name": "b", "subject": "b", "version": 1}]},
    "/subjects/b/versions/1": {"schema": "{}", "references": [{"name": "a", "subject": "a", "version": 1}]},
    "/schemas/ids/2": {},
    "/schemas/ids/3": {"schema": "{}", "references": "abc"},
    "/schemas/ids/4": {"schema": "{}", "references": [{"name": "a", "subject": "a", "version": "x"}]},
    "/schemas/ids/5": {"schema": "{}", "references": 7},
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = b"[" * 100_000 if self.path == "/schemas/ids/6" else json.dumps(ANSWERS[self.path]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_schemas_that_refer_to_one_another(url: str) -> None:
    found = Registry(Access([url])).schema(1)
    assert found is not None
    assert sorted(name for name, _ in found.references) == ["a", "b"]


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6])
def test_what_is_no_schema(url: str, number: int) -> None:
    with pytest.raises(RegistryError):
        Registry(Access([url])).schema(number)


def test_credentials_with_a_line_break_are_not_told(url: str) -> None:
    """The client library puts a header that it refuses into its message."""
    with pytest.raises(RegistryAwayError) as told:
        Registry(Access([url], "Bearer top-secret\n"), lambda _: None).schema(1)
    assert "top-secret" not in str(told.value)
    assert told.value.__cause__ is None


def test_an_answer_that_drips_is_hung_up_on() -> None:
    """Each byte comes within the time of one wait, and the last one never does."""
    ended = threading.Event()

    def drip(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            try:
                while not ended.wait(0.02):
                    connection.sendall(b" ")
            except OSError:
                ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=drip, args=[listening], daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(RegistryAwayError, match="TimeoutError"):
            Registry(Access([url], timeout=0.1), rounds=1).schema(1)
    ended.set()
