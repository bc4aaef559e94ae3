"""What open pages cost a worker: its CPU time beside the loop, and records per CPU second, with and without them.

A real broker with a backlog, one worker, phases that alternate between no page and many. Each phase with pages is held
against the mean of its neighbours without, and the median of these ratios is told: what else a machine does meanwhile
weighs on both. A page is a connection to /api/events that reads what it is sent; the browser's own work is not the
worker's.

python benchmarks/page.py --tabs 20 --seconds 4 --phases 21 --json
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

# Its own folder has a kafka.py, which would hide the package of that name.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent.resolve()]

from confluent_kafka import Producer  # noqa: E402

from stream_anon.demo import admissions  # noqa: E402
from stream_anon.demo.cluster import DEAD, INPUT, OUTPUT, kafka_policy  # noqa: E402
from stream_anon.kafka.clients.kafka_python.topics import create_topics  # noqa: E402
from stream_anon.kafka.local_broker.broker import LocalBroker, free_port  # noqa: E402


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each phase")
    parser.add_argument("--phases", type=int, default=21, help="an odd number: without pages, with pages, ..., without")
    parser.add_argument("--rate", type=int, default=4_000, help="records a second")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    arguments = parser.parse_args()
    found = measure(arguments.tabs, arguments.seconds, arguments.phases, arguments.rate)
    if arguments.json:
        print(json.dumps(found))
        return
    print(f"{arguments.tabs} open pages take {found['share_of_a_core']:.2%} of a core in the worker")
    print(f"records per CPU second: {found['without']:,.0f} without, {found['with']:,.0f} with ({found['ratio']:.3f})")


def measure(tabs: int, seconds: float, phases: int, rate: int) -> dict[str, Any]:
    """Start a broker and a worker, and compare the phases."""
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        broker = LocalBroker().start()
        held.callback(broker.remove)
        create_topics(broker.bootstrap, {INPUT: 4, OUTPUT: 4, DEAD: 1})
        policy = folder / "policy.yaml"
        policy.write_text(
            kafka_policy(broker.bootstrap).replace("attributes:\n  number: {role: insensitive}\n", "attributes:\n")
        )
        port = free_port()
        command = [sys.executable, "-m", "stream_anon", "run", "-p", str(policy), "--status-port", str(port)]
        log = held.enter_context((folder / "log").open("w"))
        worker = subprocess.Popen(command, stdout=log, stderr=log)
        held.callback(worker.wait)
        held.callback(worker.terminate)
        over = threading.Event()
        producer = threading.Thread(target=produce, args=[broker.bootstrap, rate, over])
        producer.start()
        held.callback(producer.join)
        held.callback(over.set)
        while consumed(port) < 2 * rate:
            time.sleep(0.2)
        found = [phase(worker.pid, port, tabs * (number % 2), seconds) for number in range(phases)]
        return compare(found, seconds)


def produce(bootstrap: str, rate: int, over: threading.Event) -> None:
    """Send records at a rate until told to stop."""
    producer, records = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20}), admissions(1)
    while not over.wait(0.1):
        for record in islice(records, rate // 10):
            producer.produce(INPUT, value=record)
        producer.poll(0)
    producer.flush(10)


def phase(pid: int, port: int, tabs: int, seconds: float) -> tuple[int, float, float, int]:
    """Return the pages, the CPU seconds of the process and of its threads but the first, and the records consumed."""
    with ExitStack() as held:
        over = threading.Event()
        for _ in range(tabs):
            one = held.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            one.settimeout(0.5)
            reader = threading.Thread(target=drain, args=[one, over])
            reader.start()
            held.callback(reader.join)
        held.callback(over.set)
        time.sleep(1.0)
        before, records = cpu(pid), consumed(port)
        time.sleep(seconds)
        after = cpu(pid)
        return tabs, after[0] - before[0], after[1] - before[1], consumed(port) - records


def drain(one: socket.socket, over: threading.Event) -> None:
    """Read whatever comes."""
    while not over.is_set():
        try:
            if not one.recv(1 << 16):
                return
        except TimeoutError:
            continue


def cpu(pid: int) -> tuple[float, float]:
    """Return the CPU seconds of a process, and of all its threads but the main one, which runs the loop."""
    spent = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        spent[int(thread.name)] = int((thread / "schedstat").read_text().split()[0]) / 1e9
    return sum(spent.values()), sum(value for number, value in spent.items() if number != pid)


def consumed(port: int) -> int:
    """Ask the worker how many records it has read; 0 while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status", timeout=5) as answer:
            return int(json.load(answer)["totals"]["consumed"])
    except OSError:
        return 0


def compare(phases: list[tuple[int, float, float, int]], length: float) -> dict[str, Any]:
    """Put phases with and without pages beside each other."""
    speeds = [records / cpu_seconds for _, cpu_seconds, _, records in phases]
    beside = [threads / length for _, _, threads, _ in phases]
    inner = range(1, len(phases) - 1, 2)
    ratios = sorted(2 * speeds[i] / (speeds[i - 1] + speeds[i + 1]) for i in inner)
    return {
        "phases": [[tabs, round(a, 2), round(b, 2), records] for tabs, a, b, records in phases],
        "share_of_a_core": round(median(beside[i] - (beside[i - 1] + beside[i + 1]) / 2 for i in inner), 5),
        "without": round(median(speeds[::2])),
        "with": round(median(speeds[1::2])),
        "ratio": round(median(ratios), 4),
        "ratios": [round(each, 4) for each in ratios],
    }


if __name__ == "__main__":
    main()
