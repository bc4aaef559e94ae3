"""Takes the pictures of the docs: the live page under load and a report, drawn by the Chromium of the system.

make pictures
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from contextlib import chdir
from itertools import islice
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from stream_anon.cli import run_command
from stream_anon.core.schema import Schema
from stream_anon.demo import admissions, policy, policy_text
from stream_anon.demo.stage import Stage
from stream_anon.local.warmup import warm_up
from stream_anon.observe.live.board import Board
from stream_anon.observe.live.facts import facts_of
from stream_anon.observe.server import StatusServer

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
PLACE = Path(__file__).resolve().with_name("pictures")
LIVE = {"live": (1280, 1010, "light"), "live-dark": (1280, 1010, "dark"), "live-phone": (400, 860, "light")}
SECONDS, RATE = 40.0, 200


def main() -> None:
    """Take all pictures."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        sys.exit("no Chromium on the PATH: install one, e.g. apt-get install chromium")
    PLACE.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        live(browser)
        report(browser)
        browser.close()


def live(browser: Browser) -> None:
    """Show the page of the made-up hospital, after some time of its stream."""
    schema = Schema.compile(policy())
    warm_up(schema)
    board = Board(facts_of(schema))
    stage = Stage(schema, RATE, SECONDS, 1, time.monotonic, board)
    server = StatusServer(None, lambda: True, lambda: True, status=board.status).start()
    running = threading.Thread(target=stage.run, args=[time.sleep, lambda stage: None])
    running.start()
    time.sleep(SECONDS - 12)
    for name, (width, height, scheme) in LIVE.items():
        take(browser, server.url, name, width, height, scheme, "#line[data-state=live]")
    stage.stop()
    running.join()
    server.close()


def report(browser: Browser) -> None:
    """Show the report of an audit of the same hospital."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # a page names its files as they were named
        Path("policy.yaml").write_text(policy_text(), encoding="utf-8")
        Path("raw.jsonl").write_bytes(b"\n".join(islice(admissions(3), 5_000)) + b"\n")
        run_command(["anonymize", "raw.jsonl", "-p", "policy.yaml", "-o", "out.jsonl"])
        run_command(["audit", "out.jsonl", "-p", "policy.yaml", "--raw", "raw.jsonl", "--html", "page.html"])
        take(browser, Path("page.html").resolve().as_uri(), "report", 1280, 1400, "light", "h1")


def take(browser: Browser, url: str, name: str, width: int, height: int, scheme: str, ready: str) -> None:
    """Take one picture, once the page is ready."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector(ready)
    page.wait_for_timeout(1_200)
    page.screenshot(path=str(PLACE / f"{name}.png"))
    context.close()


if __name__ == "__main__":
    main()
