"""The live page in a real Chromium, of two real workers on a real broker under load."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from broker_world import World, policy_on
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from playwright.sync_api import Page, expect, sync_playwright
from test_live_page import FACTS, HOSTILE, publish
from test_worker_commands import PROGRAM
from test_workers import children, status, until

from stream_anon.kafka.local_broker.broker import free_port
from stream_anon.observe.live.board import Board
from stream_anon.observe.live.status import PartitionFacts
from stream_anon.observe.server import StatusServer
from stream_anon.worker.takeover.restore import REMEDIES

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SIGHTS = {"desktop": (1440, 1000, "light"), "phone": (400, 850, "light"), "dark": (1440, 1000, "dark")}


@contextmanager
def chromium(url: str, complaints: list[str]) -> Iterator[Page]:
    """A page in the browser of the system; what it logs as an error or asks of others is a complaint."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        if os.environ.get("STREAM_ANON_REQUIRE_ALL"):
            pytest.fail("no Chromium on the PATH, and every part is required")
        pytest.skip("no Chromium on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(url) or complaints.append(asked.url))
        page.goto(url)
        yield page
        browser.close()


@contextmanager
def load(world: World) -> Iterator[None]:
    """Records into partition 0, without end."""
    over = threading.Event()

    def produce() -> None:
        first = 0
        while not over.wait(0.1):
            for i in range(first, first + 40):
                record = {"person": f"p{i}", "age": i % 90, "illness": "flu", "rid": i}
                world.producer.send(world.input, value=json.dumps(record).encode(), partition=i % 2 * 2)
            first += 40

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def wait_for(page: Page, words: str, timeout: float = 60_000) -> None:
    expect(page.locator("#title")).to_have_text(re.compile(words), timeout=timeout)


def published(page: Page) -> int:
    found = re.search(r"([\d,]+) records left", page.inner_text("#detail"))
    return int(found[1].replace(",", "")) if found else 0


def spoil(world: World, partition: int) -> None:
    """Commit an offset without its ledger, as a tool might."""
    tool = KafkaConsumer(bootstrap_servers=world.bootstrap, group_id=world.name, enable_auto_commit=False)
    tp = TopicPartition(world.input, partition)
    tool.assign([tp])
    tool.commit({tp: OffsetAndMetadata(0, "", -1)})
    tool.close(autocommit=False)


def test_the_page_of_real_workers(world: World, tmp_path: Path) -> None:
    world.create(4)
    spoil(world, 1)
    port, complaints = free_port(), list[str]()
    file = policy_on(world, tmp_path)
    file.write_text(file.read_text().replace("time: 2s, records: 10000", "time: 100s, records: 200"))  # never late
    command = [*PROGRAM, "run", "-p", str(file), "--workers", "2", "--status-port", str(port)]
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: status(port, "/api/status")[0] == 200)
        with load(world), chromium(f"http://127.0.0.1:{port}/", complaints) as page:
            wait_for(page, "A partition is quarantined")  # two workers are up, one partition is left alone
            assert REMEDIES["empty"] in page.inner_text("#partitions")
            assert REMEDIES["empty"] in page.inner_text("#remedy")
            until(lambda: published(page) > 0)
            before = published(page)
            until(lambda: published(page) > before)
            assert page.locator("#delays svg rect.bar").count() == 25
            for name, (width, height, scheme) in SIGHTS.items():
                page.set_viewport_size({"width": width, "height": height})
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                assert page.evaluate("document.documentElement.scrollWidth") <= width, name
                found = Axe().run(page).response["violations"]
                assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], name
            os.kill(children(process.pid)[0], signal.SIGKILL)
            wait_for(page, "A worker is (down|starting)", timeout=5_000)
            wait_for(page, "A partition is quarantined")
            process.send_signal(signal.SIGTERM)
            wait_for(page, "Ended")
            assert published(page) > before
        assert process.wait(60) == 0
        assert complaints == []
    finally:
        if process.poll() is None:
            process.kill()


def test_names_are_shown_as_they_are_and_never_run() -> None:
    """Whoever names a topic or an attribute does not thereby write the page."""
    board = Board(FACTS, lambda: [PartitionFacts(0, "quarantined", code=HOSTILE, remedy=HOSTILE)], lambda: HOSTILE)
    publish(board, [0.1] * 6)
    board.rejected(HOSTILE, 2)
    server, complaints = StatusServer(None, bool, bool, status=board.status).start(), list[str]()
    try:
        with chromium(server.url, complaints) as page:
            page.on("dialog", lambda dialog: complaints.append(dialog.message))
            expect(page.locator("#title")).to_have_text("A partition is quarantined")
            expect(page.locator("#route")).to_contain_text("<img src=x onerror=alert(1)>")
            for place in ("#losses", "#partitions", "#withheld", "#policy"):
                expect(page.locator(place)).to_contain_text("<img src=x onerror=alert(1)>")
            assert page.locator("img").count() == 0
            server.close()
            expect(page.locator("#line-text")).to_have_text("ended")
        assert complaints == []
    finally:
        server.close()
