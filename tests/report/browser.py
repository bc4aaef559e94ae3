"""A real Chromium, started for one page at a time, that tells what it drew, asked for and complained of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--enable-logging=stderr", "--log-level=0", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Sight:
    """The page as the browser has it, its log, and the addresses it asked for."""

    dom: str
    log: str
    asked: list[str]


def browser() -> str:
    """Where the browser is; skips, or fails if every part is required."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        if os.environ.get("STREAM_ANON_REQUIRE_ALL"):
            pytest.fail("no Chromium on the PATH, and every part is required")
        pytest.skip("no Chromium on the PATH")
    return found


def look(page: Path, place: Path, *more: str) -> Sight:
    """Open a page of this machine, in a profile of its own."""
    netlog = place / "net.json"
    result = subprocess.run(
        [browser(), *FLAGS, *more, f"--user-data-dir={place / 'profile'}", f"--log-net-log={netlog}", "--dump-dom",
         page.as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return Sight(result.stdout, result.stderr, addresses(netlog))


def addresses(netlog: Path) -> list[str]:
    """Every address that the page asked for; what the browser asks of its makers has no origin."""
    events = json.loads(netlog.read_text(encoding="utf-8"))["events"]
    requests = [event["params"] for event in events if "url" in event.get("params", {})]
    return sorted({params["url"] for params in requests if params.get("initiator", "not an origin") != "not an origin"})
