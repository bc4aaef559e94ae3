"""The status port under bad manners: whoever asks properly is answered, however many others do not."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
from prometheus_client import CollectorRegistry
from test_observe import get

from stream_anon.observe import server as module
from stream_anon.observe.live.status import Status
from stream_anon.observe.server import CONNECTIONS, StatusServer

HALVES = [b"", b"G", b"GET /livez HTTP/1.1\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 4_000]


@pytest.fixture
def server() -> Iterator[StatusServer]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4_096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, hard), hard))
    made = StatusServer(CollectorRegistry(), lambda: True, lambda: True).start()
    yield made
    made.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def half(port: int, text: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=10)
    made.sendall(text)
    return made


def hung_up(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_thousand_half_sent_requests_do_not_keep_anybody_waiting(server: StatusServer) -> None:
    threads = threading.active_count()
    with ExitStack() as held:
        open_ones = [held.enter_context(closing(half(server.port, HALVES[i % len(HALVES)]))) for i in range(1_000)]
        for path in ("/livez", "/readyz", "/metrics"):
            assert get(server.port, path)[0] == 200, path
        assert len(server._open) <= CONNECTIONS
        assert threading.active_count() <= threads + 8
        assert len(open_ones) == 1_000


def test_an_unfinished_request_is_hung_up_on(server: StatusServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REQUEST_SECONDS", 0.2)
    with closing(half(server.port, b"GET /livez HTTP/1.1\r\n")) as one:
        one.settimeout(20)
        assert hung_up(one)


LONG = [b"GET /" + b"x" * 20_000, b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5_000, b"\x16\x03\x01" * 6_000]


@pytest.mark.parametrize("text", LONG, ids=["line", "headers", "TLS"])
def test_a_request_without_end_is_hung_up_on(server: StatusServer, text: bytes) -> None:
    with closing(half(server.port, text)) as one:
        one.settimeout(20)
        assert hung_up(one)
    assert get(server.port, "/livez")[0] == 200


OTHER = [b"POST /metrics HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"nonsense\r\n\r\n", b"\xff\xfe\r\n\r\n"]


@pytest.mark.parametrize("text", OTHER, ids=["POST", "empty", "a word", "bytes"])
def test_other_requests_are_refused(server: StatusServer, text: bytes) -> None:
    with closing(half(server.port, text)) as one:
        assert one.recv(100).startswith((b"HTTP/1.1 405", b"HTTP/1.1 404"))


def test_who_does_not_read_the_answer_holds_nobody_up(server: StatusServer) -> None:
    with ExitStack() as held:
        for _ in range(200):
            held.enter_context(closing(half(server.port, b"GET /metrics HTTP/1.1\r\n\r\n")))
        assert get(server.port, "/livez")[0] == 200
    end = time.monotonic() + 30
    while server._open:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_flood_leaves_descriptors_to_the_worker(server: StatusServer) -> None:
    """All that queue used to be taken at once, up to the last descriptor: the worker could not reach its broker."""
    most, before = [0], len(os.listdir("/proc/self/fd"))
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            most[0] = max(most[0], len(os.listdir("/proc/self/fd")))

    flood = (
        "import socket, sys, time\n"
        "held = [socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=10) for _ in range(800)]\n"
        "[one.send(b'GET /livez HTTP/1.1') for one in held]\n"
    )
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        subprocess.run([sys.executable, "-c", flood, str(server.port)], check=True, timeout=60)
        assert get(server.port, "/livez")[0] == 200
    finally:
        over.set()
        watcher.join()
    assert most[0] - before <= 3 * CONNECTIONS


OPEN = b"application/openmetrics-text;version="
ODD = [OPEN + b"x; escaping=%s", b";;;=,=;", b"\xff" * 1000, OPEN + b"9" * 5000]


@pytest.mark.parametrize("accept", ODD, ids=["version", "signs", "bytes", "digits"])
def test_odd_headers_are_answered(server: StatusServer, accept: bytes) -> None:
    with closing(half(server.port, b"GET /metrics HTTP/1.1\r\nAccept: " + accept + b"\r\n\r\n")) as one:
        one.settimeout(20)
        assert one.recv(100).startswith(b"HTTP/1.1 200")


def test_a_status_that_cannot_be_made_closes_its_connection() -> None:
    def broken() -> Status:
        raise RuntimeError

    with closing(StatusServer(None, lambda: True, lambda: True, status=broken).start()) as server:
        request = b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with closing(half(server.port, request)) as asked, suppress(ConnectionResetError):
            assert asked.recv(1) == b""
        assert get(server.port, "/livez")[0] == 200
