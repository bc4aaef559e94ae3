"""While a broker is away its clients repeat themselves: the log says what, how often and since when, in a few lines."""

from __future__ import annotations

import io
import json
import logging
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker_world import World, policy_on

from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.observe import logs
from stream_anon.observe.logs import log_to

CLIENT = logging.getLogger("kafka.somewhere")
RECORD = {"age": 30, "illness": "flu", "rid": 1}


@pytest.fixture
def told() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, out = (root.handlers, root.level), io.StringIO()
    log_to(out)
    yield out
    root.handlers, root.level = before


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_flood_is_first_count_and_last(told: io.StringIO) -> None:
    for number in range(22_000):
        CLIENT.error("Error sending %s to node %s [%s]", b"SECRET", number, ConnectionError("SECRET"))
    first, *more = lines(told)
    assert more == []
    assert first["text"] == "Error sending %s to node %s [%s]"
    assert first["error"] == "ConnectionError"
    logging.getLogger().handlers[0].close()
    _, again = lines(told)
    assert again["count"] == 21_999
    assert again["first"] == first["time"]
    assert again["last"] == again["time"] >= first["time"]
    assert "SECRET" not in told.getvalue()


def test_the_count_is_told_while_the_process_lives(told: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "WINDOW", 0.05)
    end = time.monotonic() + 30
    while not any("count" in line for line in lines(told)):
        assert time.monotonic() < end
        CLIENT.error("again and again")
        time.sleep(0.005)


def test_different_messages_are_told_apart(told: io.StringIO) -> None:
    for _ in range(3):
        CLIENT.error("one")
        CLIENT.error("other")
        CLIENT.error("failed", extra={"error": "_TRANSPORT"})
    for kind in ("_TRANSPORT", "_ALL_BROKERS_DOWN"):
        CLIENT.error("failed", extra={"error": kind})
    assert len(lines(told)) == 5


def test_a_text_that_was_put_together_is_not_shown(told: io.StringIO) -> None:
    value = "SECRET"
    CLIENT.error(f"cannot decode {value}")
    CLIENT.error("Unable to bootstrap")
    made, written = lines(told)
    assert "text" not in made
    assert written["text"] == "Unable to bootstrap"
    assert "SECRET" not in told.getvalue()


def test_our_own_words_are_never_collapsed(told: io.StringIO) -> None:
    for partition in range(5):
        logging.getLogger("stream_anon.worker").error("quarantined", extra={"partition": partition})
    assert len(lines(told)) == 5


def test_a_broker_away_for_a_while_is_survived_in_a_few_lines(name: str, tmp_path: Path) -> None:
    """A worker with each client, one outage for both: each publishes before and after it."""
    workers: list[tuple[World, Path, subprocess.Popen[bytes]]] = []

    def published(count: int) -> None:
        for world, *_ in workers:
            world.produce(*[json.dumps({**RECORD, "person": f"{count}-{n}"}).encode() for n in range(8)])
        for world, log, _ in workers:
            world.until(lambda world=world: len(world.read()) >= count)  # type: ignore[misc]
            assert len(world.read()) == count, log.read_text()

    with LocalBroker() as broker:
        try:
            for client in ("kafka-python", "confluent-kafka"):
                world = World(broker.bootstrap, f"{name}-{client}", client).create()
                folder = tmp_path / client
                folder.mkdir()
                command = [sys.executable, "-m", "stream_anon", "run", "-p", str(policy_on(world, folder))]
                with (folder / "log").open("w") as log:
                    worker = subprocess.Popen([*command, "--status-port", "0"], stderr=log)
                workers.append((world, folder / "log", worker))
            published(8)
            broker.stop(kill=True)
            time.sleep(5)
            broker.start()
            published(16)
        finally:
            for world, _, worker in workers:
                worker.send_signal(signal.SIGTERM)
                world.close()
            for *_, worker in workers:
                worker.wait(60)
    for _, log, _ in workers:
        found = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
        assert len(found) < 60, Counter((line["logger"], line.get("text", line["event"])) for line in found)
        if log.parent.name == "kafka-python":  # the other client may notice nothing in so short a time
            assert [line for line in found if "text" in line], found
