"""A topic in a format that is not JSON, on a real broker: it is told in the log and the status, and can end the run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from broker_world import World, policy_on

from stream_anon.kafka.local_broker.broker import free_port

PROGRAM = [sys.executable, "-m", "stream_anon", "run"]
FRAMED = b"\x00\x00\x00\x00\x2a" + b"\x02Hidden7"


def test_framed_records_are_told_and_are_no_success(world: World, tmp_path: Path) -> None:
    world.create(1)
    world.produce(*[FRAMED] * 300)
    port = free_port()
    log = (tmp_path / "log").open("w+")
    process = subprocess.Popen(
        [*PROGRAM, "-p", str(policy_on(world, tmp_path)), "--status-port", str(port)], stderr=log
    )
    try:
        said, end = "", time.monotonic() + 60
        while "schema-registry framing" not in said:
            assert time.monotonic() < end
            assert process.poll() is None
            said = (tmp_path / "log").read_text()
        body = urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).read().decode()
        assert "schema-registry framing" in body
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 5
    finally:
        if process.poll() is None:
            process.kill()
    assert "Hidden7" not in (tmp_path / "log").read_text()
    assert world.read() == []


def test_a_limit_ends_the_worker(world: World, tmp_path: Path) -> None:
    world.create(1)
    world.produce(*[FRAMED] * 300)
    command = [*PROGRAM, "-p", str(policy_on(world, tmp_path)), "--status-port", "0", "--max-rejected", "0.5"]
    done = subprocess.run(command, capture_output=True, timeout=90)
    assert done.returncode == 5
    assert b"max_rejected" in done.stderr
    assert {letter["code"] for letter in world.read(world.dead)} == {"registry_framing"}
