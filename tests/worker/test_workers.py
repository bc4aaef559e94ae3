"""Several workers as one process: failures, signals, one status port; then on a real broker."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from broker_world import World, policy_on
from test_worker_commands import PROGRAM

from stream_anon.kafka.local_broker.broker import free_port
from stream_anon.observe.merged import Workers
from stream_anon.observe.metrics import Metrics
from stream_anon.observe.server import StatusServer
from stream_anon.worker.supervisor import Supervisor


def until(condition: Callable[[], bool], timeout: float = 120.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def python(text: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", text, *map(str, arguments)]


WAIT = "import sys; open(sys.argv[1], 'w').close(); sys.stdin.read()"


@pytest.mark.parametrize("code", [2, 3, 70])
def test_what_cannot_be_mended_ends_all(code: int, tmp_path: Path) -> None:
    supervisor = Supervisor([python(WAIT, tmp_path / "other"), python(f"raise SystemExit({code})")])
    assert supervisor.run() == code
    assert supervisor.running == [False, False]
    assert supervisor.restarts == 0


def test_a_violation_while_all_end_is_not_forgotten(tmp_path: Path) -> None:
    mark = tmp_path / "waits"
    # It must not block: a signal just before the call that does would be seen after it.
    text = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(70)); "
    text += "open(sys.argv[1], 'w').close(); [time.sleep(0.05) for _ in range(1200)]"
    supervisor = Supervisor([python(text, mark), python(WAIT, tmp_path / "other")])
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(supervisor.run()))
    thread.start()
    until(mark.exists)
    supervisor.stop()
    thread.join(30)
    assert codes == [70]


def test_a_violation_is_read_through_the_one_port_before_all_end(tmp_path: Path) -> None:
    """As in `run`: the worker waits until its count was read; asking for the whole is asking for each."""
    violated = """
import sys
from stream_anon.observe.metrics import Metrics
from stream_anon.observe.server import StatusServer
metrics = Metrics("trial", "abcdef", 2.0, ["age"])
metrics.violated()
sys.exit(70 if StatusServer(metrics.registry, bool, bool, port=int(sys.argv[1])).start().await_reading(60) else 1)
"""
    port = free_port()
    supervisor = Supervisor([python(violated, port), python(WAIT, tmp_path / "other")])
    whole = Workers([port, free_port()], lambda: supervisor.running, lambda: supervisor.restarts)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(supervisor.run()))
    thread.start()
    counted = functools.partial(
        whole.registry.get_sample_value, "stream_anon_privacy_violations_total", {"worker": "0"}
    )
    until(lambda: counted() == 1)
    thread.join(30)
    assert codes == [70]


def test_a_failed_worker_is_started_again(tmp_path: Path) -> None:
    first_fails = f"import os, sys; os.path.exists(sys.argv[1]) or (open(sys.argv[1], 'w'), sys.exit(1)); {WAIT}"
    mark = tmp_path / "failed once"
    supervisor = Supervisor([python(first_fails, mark), python(WAIT, tmp_path / "other")])
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(supervisor.run()))
    thread.start()
    until(lambda: supervisor.restarts == 1 and supervisor.running == [True, True])
    supervisor.stop()
    thread.join(30)
    assert codes == [0]
    assert supervisor.running == [False, False]


def test_a_worker_that_always_fails_ends_all_in_the_end() -> None:
    hours = iter(range(0, 10_000, 40))  # each look at the clock is a wait later
    supervisor = Supervisor([python("raise SystemExit(1)")], lambda: float(next(hours)))
    assert supervisor.run() == 1
    assert supervisor.restarts == 5


def test_workers_speak_through_one_port() -> None:
    each = [Metrics("trial", "abcdef", 2.0, ["age"]) for _ in range(2)]
    ready, running = [True, False], [True, True]
    servers = [
        StatusServer(metrics.registry, lambda: True, lambda i=i: ready[i]).start()  # type: ignore[misc]
        for i, metrics in enumerate(each)
    ]
    whole = Workers([server.port for server in servers], lambda: running, lambda: 3)
    each[0].consumed(5)
    each[1].consumed(7)
    value = whole.registry.get_sample_value
    assert value("stream_anon_records_consumed_total", {"worker": "0"}) == 5
    assert value("stream_anon_records_consumed_total", {"worker": "1"}) == 7
    assert value("stream_anon_transactions_total", {"worker": "1", "result": "committed"}) == 0
    assert value("stream_anon_workers_running") == 2
    assert value("stream_anon_worker_restarts_total") == 3
    assert whole.live()
    assert not whole.ready()
    ready[1] = True
    assert whole.ready()
    running[0] = False
    assert not whole.ready()
    servers[0].close()
    assert whole.live(), "a worker that is being started again does not hang"
    assert not whole.ready()
    assert value("stream_anon_records_consumed_total", {"worker": "1"}) == 7
    servers[1].close()


def status(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def produce(world: World, start: int, count: int) -> None:
    for i in range(start, start + count):
        record = {"person": f"p{i}", "age": i % 90, "illness": "flu", "rid": i}
        world.produce(json.dumps(record).encode(), partition=i % 4)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_two_workers_as_one_survive_a_kill(world: World, tmp_path: Path) -> None:
    world.create(4)
    port = free_port()
    log = (tmp_path / "log").open("w+")
    command = [*PROGRAM, "run", "-p", str(policy_on(world, tmp_path)), "--workers", "2", "--status-port", str(port)]
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until(lambda: status(port, "/readyz")[0] == 200)
        produce(world, 0, 200)
        until(lambda: len(world.read()) >= 180)
        text = status(port, "/metrics")[1]
        assert all(f'stream_anon_partitions_assigned{{worker="{i}"}} 2.0' in text for i in range(2)), text
        before = children(process.pid)
        os.kill(before[0], signal.SIGKILL)
        until(lambda: "stream_anon_worker_restarts_total 1.0" in status(port, "/metrics")[1])
        until(lambda: status(port, "/readyz")[0] == 200)
        assert len(set(children(process.pid)) & set(before)) == 1
        produce(world, 200, 200)
        until(lambda: len(world.read()) >= 380)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.seek(0) or log.read()
        numbers = [record["rid"] for record in world.read()]
        assert len(numbers) == len(set(numbers))
    finally:
        if process.poll() is None:
            process.kill()


def test_a_worker_leaves_when_the_one_that_started_it_is_gone(world: World, tmp_path: Path) -> None:
    world.create(1)
    port = free_port()
    command = [*PROGRAM, "run", "-p", str(policy_on(world, tmp_path)), "--slot", "one", "--status-port", str(port)]
    with (tmp_path / "log").open("w+") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
    until(lambda: status(port, "/readyz")[0] == 200)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0
