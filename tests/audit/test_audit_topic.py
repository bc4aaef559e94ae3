"""The audit of a topic on a real broker: as it stands, as it grows, and with what must not be there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from publishing import Published, people, publish

from stream_anon.cli import run_command as run
from stream_anon.kafka.clients.kafka_python.topics import await_topics

COMMAND = [sys.executable, "-c", "from stream_anon.__main__ import main; main()"]


@pytest.fixture
def made(tmp_path: Path) -> Published:
    return publish(tmp_path, "plain", "distinct", {"name": "cail"}, people(90, seed=4))


@pytest.fixture
def send(bootstrap: str, name: str) -> Callable[..., None]:
    """A topic of two partitions, and a way to send published records to it."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(name, 2, 1), NewTopic(f"{name}-raw", 1, 1)])
    await_topics(admin, [name, f"{name}-raw"])
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    producer.init_transactions()

    def send(lines: list[bytes], headers: list[tuple[str, bytes]] | None = None, abort: bool = False) -> None:
        producer.begin_transaction()
        for line in lines:
            key = json.loads(line)["_anon"]["group"].encode()
            producer.send(name, value=line, key=key, headers=headers or [])
        producer.flush()
        if abort:
            producer.abort_transaction()
        else:
            producer.commit_transaction()

    return send


def test_a_topic(
    made: Published,
    send: Callable[..., None],
    bootstrap: str,
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = made.out.read_bytes().splitlines()
    send(lines[:3], abort=True)
    send(lines)
    command = ["audit", f"kafka:{name}", "-p", str(made.policy), "--bootstrap", bootstrap, "--json"]
    for isolation, repeated in (("read_committed", 0), ("read_uncommitted", 3)):
        assert run([*command, "--isolation", isolation, "--raw", str(made.raw)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["passed"], found["records"], found["raw"]["matched"]) == (True, 90, 90)
        assert found["repeated"] == repeated
    assert run([*command, "--follow", "--idle", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 90
    send(lines[:1], [("offset", b"17")])
    assert run(command) == 4
    codes = {finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert codes >= {"header", "row-twice"}


def test_a_topic_beside_its_input(
    made: Published, send: Callable[..., None], bootstrap: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The raw records come from a topic too; their times tell how long the slowest record took, at the least."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for line in made.raw.read_bytes().splitlines():
        producer.send(f"{name}-raw", value=line, key=b"some patient", timestamp_ms=int(time.time() * 1000) - 2000)
    producer.flush()
    send(made.out.read_bytes().splitlines())
    topics = [f"kafka:{name}", "--raw", f"kafka:{name}-raw"]
    assert run(["audit", *topics, "-p", str(made.policy), "--bootstrap", bootstrap, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["raw"]
    assert (found["raw_rows"], found["matched"]) == (90, 90)
    assert found["longest_delay"] >= 2.0


def test_follow_until_told_to_stop(
    made: Published, send: Callable[..., None], bootstrap: str, name: str, tmp_path: Path
) -> None:
    """Findings are told as they come; SIGTERM ends with the verdict."""
    lines = made.out.read_bytes().splitlines()
    talk = tmp_path / "talk.txt"
    with talk.open("wb") as stderr:
        follower = subprocess.Popen(
            [
                *COMMAND,
                "audit",
                f"kafka:{name}",
                "-p",
                str(made.policy),
                "--bootstrap",
                bootstrap,
                "--follow",
                "--json",
            ],
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        try:
            send(lines)
            send(lines[:1])
            until = time.monotonic() + 60
            while b"row-twice" not in talk.read_bytes():
                assert follower.poll() is None
                assert time.monotonic() < until, "the finding was not told"
                time.sleep(0.1)
            follower.send_signal(signal.SIGTERM)
            out, _ = follower.communicate(timeout=60)
        finally:
            follower.kill()
    assert follower.returncode == 4
    found = json.loads(out)
    assert "row-twice" in [finding["code"] for finding in found["findings"]]
    assert found["records"] >= 90


def test_no_such_topic(bootstrap: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", f"kafka:{name}-none", "--bootstrap", bootstrap]) == 1
    assert "there is no topic" in capsys.readouterr().err
    assert run(["audit", f"kafka:{name}"]) == 2
