"""The live page's server: one status for one worker and for several, safe to show whatever things are called."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from test_observe import get

from stream_anon.core.schema import Schema
from stream_anon.demo import policy
from stream_anon.observe.live.board import Board
from stream_anon.observe.live.facts import facts_of
from stream_anon.observe.live.merge import Merger
from stream_anon.observe.live.status import PartitionFacts, PolicyFacts, Status, Totals, WorkerFacts
from stream_anon.observe.live.streams import STREAMS
from stream_anon.observe.live.verdict import verdict
from stream_anon.observe.merged import Workers
from stream_anon.observe.server import CONNECTIONS, StatusServer

HOSTILE = "<img src=x onerror=alert(1)>\"'&</script>\u202e\u2028"
FACTS = PolicyFacts(
    HOSTILE, "abcdef", 5, "people", 2.0, ("k_anonymity k=5",), (HOSTILE, "age"), HOSTILE, "out", "g", 100
)
PAGE = Path(__file__).parents[2] / "stream_anon/observe/live/page"


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def publish(board: Board, delays: list[float], sizes: list[int] | None = None) -> None:
    sizes = sizes or [len(delays)]
    losses = np.array([[0.2, 0.4]] * len(sizes))
    board.consumed(len(delays))
    board.published(["ready"] * len(sizes), sizes, np.array(delays), np.full(len(delays), np.nan), losses)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(clock: Clock) -> Board:
    return Board(FACTS, clock=clock)


@pytest.fixture
def server(board: Board) -> Iterator[StatusServer]:
    made = StatusServer(CollectorRegistry(), lambda: True, lambda: True, status=board.status).start()
    yield made
    made.close()


def test_a_board_counts_the_last_minute_and_the_last_hour(board: Board, clock: Clock) -> None:
    publish(board, [0.1] * 5 + [1.9] * 4 + [2.5], [5, 5])
    board.missed(1)
    first = board.status()
    assert sum(first.delays.counts) == 10
    assert first.delays.counts[-1] == 1
    assert first.delays.edges[-1] == 2.0
    assert first.sizes.counts[:2] == [0, 2]
    assert first.sizes.edges[:2] == [0.0, 5.0]
    assert [(loss.minute, loss.hour) for loss in first.losses] == [(0.2, 0.2), (0.4, 0.4)]
    assert first.verdict.title == "Deadlines missed"
    assert first.longest == 2.5
    clock.now += 120
    later = board.status()
    assert sum(later.delays.counts) == 0
    assert (later.losses[0].minute, later.losses[0].hour) == (None, 0.2)
    assert (later.verdict.tone, later.verdict.title) == ("warn", "Deadlines were missed")
    clock.now += 4_000
    assert board.status().losses[0].hour is None
    assert board.status().totals.published == 10


def test_the_worst_decides() -> None:
    worker, good = WorkerFacts(0, "working"), Totals(consumed=9, published=9)
    lost = PartitionFacts(3, "quarantined", code="lost", remedy="restore it")

    def judged(totals: Totals, *workers: WorkerFacts, partitions: tuple[PartitionFacts, ...] = ()) -> tuple[str, str]:
        found = verdict(FACTS, totals, partitions, workers or (worker,))
        return found.tone, found.remedy

    assert judged(good) == ("good", "")
    assert judged(Totals()) == ("idle", "")
    assert judged(good, partitions=(lost,)) == ("warn", "restore it")
    assert judged(good, worker, WorkerFacts(1, "gone"), partitions=(lost,))[0] == "warn"
    assert judged(good, WorkerFacts(0, "stalled"))[0] == "bad"
    assert judged(Totals(published=9, violations=1), WorkerFacts(0, "gone"), partitions=(lost,))[1].endswith(
        "report it"
    )
    assert judged(good, WorkerFacts(0, "ended")) == ("idle", "")


def test_the_status_is_what_its_schema_says(server: StatusServer, board: Board) -> None:
    publish(board, [0.5] * 6)
    told, schema = get(server.port, "/api/status")[1], json.loads(get(server.port, "/api/schema")[1])
    assert msgspec.json.decode(told, type=Status).totals.published == 6
    fields = schema["$defs"]["Status"]["properties"]
    assert json.loads(told).keys() == fields.keys()
    documented = (Path(__file__).parents[2] / "docs/live.md").read_text()
    assert [name for name in fields if f"`{name}`" not in documented] == []


def test_workers_are_one(clock: Clock) -> None:
    facts = [Board(FACTS, lambda n=n: [PartitionFacts(n, "reading")], clock=clock) for n in range(2)]  # type: ignore[misc]
    publish(facts[0], [0.5] * 6)
    publish(facts[1], [1.5] * 5)
    facts[1].rejected("not_json", 2)
    facts[1].lag(1, 7)
    with ExitStack() as held:
        servers = [StatusServer(None, bool, bool, status=each.status).start() for each in facts]
        for each in servers:
            held.callback(each.close)
        running = [True, True, True]
        whole = Workers([*(each.port for each in servers), 1], lambda: running, lambda: 4)
        status = whole.status(Board(FACTS, clock=clock).status())
        assert (status.totals.published, status.totals.rejected, status.restarts) == (11, {"not_json": 2}, 4)
        assert [(each.partition, each.worker, each.lag) for each in status.partitions] == [(0, 0, None), (1, 1, 7)]
        assert [each.state for each in status.workers] == ["working", "working", "starting"]
        assert sum(status.delays.counts) == 11
        assert sum(status.rates.consumed) == 5.5  # of 11 records in two seconds
        assert status.losses[0].minute == 0.2
        running[0] = False
        down = whole.status(Board(FACTS, clock=clock).status())
        assert (down.verdict.tone, down.workers[0].state) == ("warn", "gone")
        assert down.totals.published == 11, "what a worker did is not forgotten with it"
        assert whole.status(Board(FACTS, clock=clock).status(), stopping=True).workers[0].state == "ended"


def test_totals_go_on_when_a_worker_is_started_again(clock: Clock) -> None:
    merger, empty = Merger(1), Board(FACTS).status()

    def told(published: int, uptime: float) -> Status:
        status = Board(FACTS).status()
        status.totals.published, status.workers[0].uptime = published, uptime
        return status

    counts = [
        merger.merge([status], [True], 0, empty, False).totals.published
        for status in (told(5, 1.0), told(9, 2.0), None, told(3, 0.5), told(4, 1.5))
    ]
    assert counts == [5, 9, 9, 12, 13]


def test_every_answer_is_kept_from_others(server: StatusServer) -> None:
    for path in ("/", "/page.js", "/charts.js", "/page.css", "/icon.svg", "/api/status", "/api/schema", "/elsewhere"):
        try:
            answer = urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            policy_of_page = answer.headers["Content-Security-Policy"]
            assert policy_of_page.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
            assert "unsafe" not in policy_of_page
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers.get("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize("path", ["/", "/api/status", "/api/events", "/page.js"])
def test_another_name_for_the_loopback_is_refused(server: StatusServer, path: str) -> None:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="421"):
        urllib.request.urlopen(request, timeout=5)


def test_the_page_has_no_inline_script_and_asks_nobody_else() -> None:
    text = (PAGE / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", text)
    for file in PAGE.iterdir():
        content = file.read_text()
        assert re.findall(r"(?:https?:)?//[a-z][\w.]+", re.sub(r"http://www\.w3\.org/2000/svg", "", content)) == [], (
            file
        )
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", content), file


def stream(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=10)
    made.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return made


def read_until(one: socket.socket, wanted: bytes) -> bytes:
    text = b""
    while wanted not in text:
        more = one.recv(65_536)
        assert more, text[-200:]
        text += more
    return text


def test_open_pages_do_not_starve_whoever_asks_for_the_health(server: StatusServer, board: Board) -> None:
    with ExitStack() as held:
        pages = [held.enter_context(closing(stream(server.port))) for _ in range(STREAMS)]
        for page in pages:
            assert b"text/event-stream" in read_until(page, b"data: {")
        with closing(stream(server.port)) as one_more:
            assert read_until(one_more, b"\r\n\r\n").startswith(b"HTTP/1.1 503")
        halves = [held.enter_context(closing(socket.create_connection(("127.0.0.1", server.port)))) for _ in range(200)]
        for path in ("/livez", "/readyz", "/metrics", "/", "/api/status"):
            assert get(server.port, path)[0] == 200, path
        assert len(server._open) <= CONNECTIONS < len(halves)
        publish(board, [0.1] * 7)
        for page in pages:  # none of them was hung up on
            read_until(page, b'"published":7')
    board.end()
    server.close()


def test_a_page_hears_the_end(server: StatusServer, board: Board) -> None:
    publish(board, [0.1] * 7)
    with closing(stream(server.port)) as page:
        read_until(page, b"data: {")
        board.end()
        server.close()
        text = read_until(page, b"event: end")
    assert b'"title":"Ended"' in text


def test_who_does_not_read_is_hung_up_on(server: StatusServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_anon.observe.live.streams._EVERY", 0.001)
    monkeypatch.setattr("stream_anon.observe.live.streams._UNREAD", 10_000)
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.settimeout(10)
    with closing(made):
        made.connect(("127.0.0.1", server.port))
        made.sendall(b"GET /api/events HTTP/1.1\r\n\r\n")
        read_until(made, b"data: {")
        assert server._streams is not None
        while len(server._streams):
            assert get(server.port, "/livez")[0] == 200


def test_facts_have_no_secret_and_no_values() -> None:
    schema = Schema.compile(policy())
    text = str(facts_of(schema))
    assert "hide" not in text
    assert "l_diversity attribute=diagnosis l=3" in text
    assert facts_of(schema).attributes == ("birth_year", "zip", "gender", "country")
