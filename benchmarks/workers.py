"""`run --workers N` on four partitions: records per second of one worker, then of N, and how full the cores were.

The workers share an empty topic first; the clock runs from the first record to the last but a seventh, which wait for
company that does not come any more. Prints one JSON line with --json. KAFKA_BOOTSTRAP names a broker, else one is
started on the same cores.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

_shared = runpy.run_path(str(Path(__file__).with_name("kafka.py")))
POLICY, fill = _shared["POLICY"], _shared["fill"]
PARTITIONS = 4


def metrics(port: int) -> dict[str, float]:
    """Return the sum over all workers of each metric without labels of its own; nothing while nobody answers."""
    found: dict[str, float] = {}
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
    except OSError:
        return {}
    for line in lines:
        name, _, value = line.rpartition(" ")
        name = name.partition("{")[0]
        if not line.startswith("#"):
            found[name] = found.get(name, 0.0) + float(value)
    return found


def busy() -> float:
    """Processor seconds that all cores of this machine have worked so far."""
    times = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(times) - times[3] - times[4]) / os.sysconf("SC_CLK_TCK")


def own(pid: int) -> float:
    """Processor seconds of the workers of a supervisor, or of a single worker."""
    pids = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] or [pid]
    words = [Path(f"/proc/{p}/stat").read_text().rpartition(")")[2].split() for p in pids]
    return sum(int(w[11]) + int(w[12]) for w in words) / os.sysconf("SC_CLK_TCK")


def wait(condition: Any, seconds: float = 240.0) -> None:
    """Look often; a benchmark that does not get on ends."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("the workers did not get on")
        time.sleep(0.25)


def measure(bootstrap: str, options: argparse.Namespace, workers: int) -> dict[str, float]:
    """One run of so many workers."""
    from stream_anon.kafka.clients import client_of
    from stream_anon.kafka.local_broker.broker import free_port

    name, port = f"bench-{uuid4().hex[:8]}", free_port()
    client_of(options.client).create_topics(bootstrap, {name: PARTITIONS, f"{name}-out": 1})
    settings = {"bootstrap": bootstrap, "client": options.client, "group": name, "input": name, "delay": "2s"}
    settings |= {"output": f"{name}-out", "records": options.window, "algorithm": "cail"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.yaml"
        file.write_text(POLICY % settings)
        command = [sys.executable, "-m", "stream_anon", "run", "-p", str(file), "--workers", str(workers)]
        process = subprocess.Popen([*command, "--status-port", str(port)], stderr=subprocess.DEVNULL)
        try:
            wait(lambda: metrics(port).get("stream_anon_partitions_assigned") == PARTITIONS)
            time.sleep(3)  # the second half of a cooperative rebalance
            fill(bootstrap, name, options.records, PARTITIONS)
            began, machine, mine = time.monotonic(), busy(), own(process.pid)
            before = metrics(port)["stream_anon_records_published_total"]
            wait(lambda: metrics(port)["stream_anon_records_published_total"] >= options.records * 6 / 7)
            seconds, after = time.monotonic() - began, metrics(port)["stream_anon_records_published_total"]
            result = {
                "records_per_second": round((after - before) / seconds),
                "worker_cores": round((own(process.pid) - mine) / seconds, 2),
                "busy_cores": round((busy() - machine) / seconds, 2),
                "cpu_us_per_record": round(1e6 * (own(process.pid) - mine) / (after - before), 1),
            }
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            return result
        finally:
            if process.poll() is None:
                process.kill()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--window", type=int, default=1_000)
    parser.add_argument("--client", default="confluent-kafka", choices=["kafka-python", "confluent-kafka"])
    options = parser.parse_args()

    from stream_anon.kafka.local_broker.broker import LocalBroker

    broker = None if os.environ.get("KAFKA_BOOTSTRAP") else LocalBroker().start()
    try:
        bootstrap = os.environ.get("KAFKA_BOOTSTRAP") or broker.bootstrap  # type: ignore[union-attr]
        one, more = measure(bootstrap, options, 1), measure(bootstrap, options, options.workers)
    finally:
        if broker is not None:
            broker.remove()
    result = {
        "client": options.client,
        "cores": os.cpu_count(),
        "one": one,
        "workers": options.workers,
        "more": more,
        "ratio": round(more["records_per_second"] / one["records_per_second"], 2),
    }
    if options.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:10} {value}")


if __name__ == "__main__":
    main()
