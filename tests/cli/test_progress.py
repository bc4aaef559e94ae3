"""What a terminal shows meanwhile: live lines of `run`, a count of `audit --follow`, a bar over big files."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from stream_anon.cli import audit_progress
from stream_anon.cli.audit_progress import EVERY, Count
from stream_anon.cli.run_view import LogFormat, drawn, logged
from stream_anon.observe.live.board import Board
from stream_anon.observe.live.status import PartitionFacts, PolicyFacts
from stream_anon.observe.live.summary import lines_of, log_summary
from stream_anon.observe.logs import log_to

FACTS = PolicyFacts("visits", "abcdef", 5, "people", 2.0, ("k_anonymity k=5",), ("age",), "in", "out", "g", 100)


@pytest.fixture
def quiet_root() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers, root.level
    yield
    root.handlers, root.level = before


@pytest.fixture
def board() -> Board:
    made = Board(FACTS, lambda: [PartitionFacts(0, "reading"), PartitionFacts(1, "paused")])
    made.consumed(12)
    made.published(["ready", "ready"], [5, 5], np.full(10, 0.5), np.full(10, np.nan), np.array([[0.2], [0.4]]))
    made.rejected("not_json", 2)
    return made


def test_the_lines_of_a_run_say_the_promise_first(board: Board) -> None:
    first, flow, rest = lines_of(board.status())
    assert first == "The promise holds: 10 records left in groups of at least 5 people, each within 2 s"
    assert "rejected 2" in flow
    assert "loss 30.0%   partitions: 1 paused, 1 reading" in rest
    assert "p99 0.50 s of 2 s" in rest
    assert drawn(board.status()).plain.startswith("✓ The promise holds")


def test_a_remedy_is_shown_below_the_promise() -> None:
    made = Board(FACTS, lambda: [PartitionFacts(3, "quarantined", code="lost", remedy="restore it")])
    assert lines_of(made.status())[1] == "→ restore it"


@pytest.mark.usefixtures("quiet_root")
def test_a_summary_is_a_line_of_the_log(board: Board) -> None:
    out = io.StringIO()
    log_to(out)
    log_summary(board.status())
    line = json.loads(out.getvalue())
    assert (line["event"], line["published"], line["rejected"], line["verdict"]) == (
        "summary",
        10,
        2,
        "The promise holds",
    )
    out = io.StringIO()
    log_to(out, plain=True)
    log_summary(board.status())
    assert " summary: verdict The promise holds, consumed 12, published 10" in out.getvalue()


@pytest.mark.usefixtures("quiet_root")
def test_the_last_summary_is_written_at_the_end(board: Board, capfd: pytest.CaptureFixture[str]) -> None:
    with logged(board.status, LogFormat.AUTO):
        pass
    assert json.loads(capfd.readouterr().err)["published"] == 10  # no terminal: JSON


def test_a_followed_topic_is_counted() -> None:
    now, out = [0.0], io.StringIO()
    with Count(Console(file=out), clock=lambda: now[0]) as count:
        count.add(100, 0)
        assert out.getvalue() == ""
        now[0] = EVERY
        count.add(500, 1)
    assert out.getvalue() == "600 records audited, 20/s: 1 kind(s) of findings\n"


def test_a_terminal_sees_one_line_that_changes() -> None:
    now, out = [0.0], io.StringIO()
    with Count(Console(file=out, force_terminal=True), clock=lambda: now[0]) as count:
        for i in range(1, 4):
            now[0] = float(i)
            count.add(100, 0)
    assert "300 records audited" in out.getvalue()


def test_a_big_file_has_a_bar_in_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal of its own: what is written there is read from the other end."""
    lines = tmp_path / "out.jsonl"
    lines.write_text('{"age": [1, 2], "_anon": {"group": "a", "row": 0, "size": 1}}\n' * 3_000)
    program = (
        f"from stream_anon.cli import audit_progress, run_command; audit_progress.BIG = 1_000; "
        f"run_command(['audit', {str(lines)!r}])"
    )
    here, there = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=there) as process:
        os.close(there)
        seen = b""
        while select.select([here], [], [], 60)[0]:
            try:
                more = os.read(here, 65_536)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            seen += more
        process.wait(60)
    os.close(here)
    assert b"auditing" in seen
    assert audit_progress._records(lines) == 0  # of an ordinary size
