"""Processes that need the same store at once wait for each other, and not for one that died."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

PROGRAM = """
import sys, time
from stream_anon.kafka.local_broker.broker import one_at_a_time
with one_at_a_time("test"):
    with open(sys.argv[1], "a") as file:
        file.write("in\\n")
        file.flush()
        time.sleep(float(sys.argv[2]))
        file.write("out\\n")
"""


def test_one_is_in_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", PROGRAM, str(log)]
    several = [subprocess.Popen([*command, "0.2"]) for _ in range(3)]
    assert [process.wait(60) for process in several] == [0, 0, 0]
    assert log.read_text().split() == ["in", "out"] * 3


def test_who_died_inside_holds_nobody_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    dying = subprocess.Popen([sys.executable, "-c", PROGRAM, str(log), "600"])
    end = time.monotonic() + 60
    while not log.exists():
        assert time.monotonic() < end
    dying.kill()
    dying.wait()
    assert subprocess.run([sys.executable, "-c", PROGRAM, str(log), "0"], timeout=60).returncode == 0
