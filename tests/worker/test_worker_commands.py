"""run and doctor as a person starts them, on a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from broker_world import World, policy_on

from stream_anon.kafka.local_broker.broker import free_port

METRICS = {
    "records_consumed_total",
    "records_published_total",
    "records_suppressed_total",
    "records_rejected_total",
    "groups_published_total",
    "record_delay_seconds_bucket",
    "deadlines_missed_total",
    "privacy_violations_total",
    "group_size_records_bucket",
    "information_loss_ratio_bucket",
    "buffered_records",
    "open_clusters",
    "oldest_record_age_seconds",
    "stage_duration_seconds_bucket",
    "consumer_lag_records",
    "offset_metadata_bytes",
    "transactions_total",
    "build_info",
    "policy_info",
}
PROGRAM = [sys.executable, "-m", "stream_anon"]


def doctor(file: Path) -> dict[str, dict[str, object]]:
    done = subprocess.run(
        [*PROGRAM, "doctor", "-p", str(file), "--json"], capture_output=True, text=True, timeout=90, check=False
    )
    return {finding["question"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_doctor_names_what_is_missing(world: World, tmp_path: Path) -> None:
    file = policy_on(world, tmp_path)
    found = doctor(file)
    assert found["broker"]["good"]
    assert not found["output topic"]["good"]
    assert "create it" in str(found["output topic"]["remedy"])
    world.create(2)
    found = doctor(file)
    assert all(finding["good"] for finding in found.values()), found
    assert {"transactions", "metadata limit", "clock", "ledgers", "group"} <= set(found)


def test_doctor_without_a_broker(world: World, tmp_path: Path) -> None:
    file = policy_on(world, tmp_path)
    file.write_text(file.read_text().replace(world.bootstrap, f"127.0.0.1:{free_port()}"))
    found = doctor(file)
    assert list(found) == ["broker"]
    assert "nothing listens there: start the broker" in str(found["broker"]["detail"])
    assert found["broker"]["remedy"]


def test_run_publishes_tells_and_stops(world: World, tmp_path: Path) -> None:
    world.create(2)
    port = free_port()
    command = [*PROGRAM, "run", "-p", str(policy_on(world, tmp_path)), "--status-port", str(port)]
    log = (tmp_path / "log").open("w+")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for i in range(202):
            record = {"person": f"MARK{i}", "age": i % 90, "illness": "flu", "rid": i, "extra": "MARK"}
            world.produce(json.dumps(record).encode(), partition=i % 2)
        world.produce(b"not json MARK", b'{"age": "MARK"}')
        end = time.monotonic() + 60
        while len(world.read()) < 190:
            assert time.monotonic() < end
            assert process.poll() is None, log.seek(0) or log.read()
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
        samples = {line.partition("{")[0].partition(" ")[0] for line in text.splitlines() if line[0] != "#"}
        assert {f"stream_anon_{name}" for name in METRICS} <= samples
        assert 'stream_anon_offset_metadata_bytes{partition="1"}' in text
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).status == 200
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert process.wait(20) == 0
        assert time.monotonic() - began < 10
    finally:
        if process.poll() is None:
            process.kill()
    log.seek(0)
    told = log.read() + text + json.dumps(world.read(level="read_uncommitted")) + json.dumps(world.read(world.dead))
    assert "MARK" not in told
    assert {letter["code"] for letter in world.read(world.dead)} >= {"not_json"}
