"""The demo on a real Kafka: what it promises is kept, and nothing that it started outlives it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from importlib.util import find_spec

import pytest

from stream_anon.cli import kafka_setup
from stream_anon.cli import run_command as run
from stream_anon.kafka.local_broker.broker import listening

COMMAND = [sys.executable, "-m", "stream_anon", "demo", "--kafka"]
PATIENCE = 180


def test_ctrl_c_ends_everything_in_good_order() -> None:
    process = subprocess.Popen(
        [*COMMAND, "--seconds", "600", "--rate", "200", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    talk = []
    for line in process.stderr:
        talk.append(line)
        if re.match(r" +\d+ s  in [\d,]+  published [1-9]", line):
            break
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=PATIENCE)
    found = json.loads(out)
    broken = [check["name"] for check in found["checks"] if not check["ok"]]
    assert broken in ([], ["within the delay bound"]), rest  # a busy machine may be late, and must say so
    assert process.returncode == (1 if broken else 130)
    assert found["interrupted"] is True
    records = found["records"]
    assert records["in"] == records["out"] + records["suppressed"] > 0
    assert found["smallest_group_people"] >= 5
    assert found["loss_per_attribute"].keys() == {"birth_year", "zip", "gender", "country"}
    port = re.search(r"Kafka listens on 127\.0\.0\.1:(\d+)", "".join(talk))
    assert port is not None
    assert not listening(int(port[1]))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kafka_setup, "find_spec", lambda name: None if name == "jgo" else find_spec(name))
    assert run(["demo", "--kafka"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("pip install 'stream-anon[kafka,broker]'\n")


def test_another_policy_is_sent_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--kafka", "-p", "mine.yaml"]) == 2
    told = capsys.readouterr().err
    assert "--policy" in told
    assert "mine.yaml" in told
