"""A large window on few partitions: ledgers in a topic against ledgers beside the offsets, then a successor's start.

Records come at a steady rate for some bounds. Told are the time that partitions were paused, missed deadlines, how many
rows waited, what the ledgers cost, the memory of a row that waits, and the loss beside that of the engine alone, which
gets the same records at the same times. Then the worker is gone without a word, and a successor takes over what waits.

    python benchmarks/ledger.py --json                                       one partition, 20,000 records/s, bound 10 s
    python benchmarks/ledger.py --json --partitions 4 --bound 60 --stores topic               1.2 million rows that wait
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import runpy
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

# A file beside this one is called like the client's package, which has to be found first.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent.resolve()]

import numpy as np  # noqa: E402

_shared = runpy.run_path(str(Path(__file__).with_name("kafka.py")))
POLICY, fill, record, in_process = (_shared[name] for name in ("POLICY", "fill", "record", "in_process"))
PAGE = os.sysconf("SC_PAGE_SIZE")


def policy_of(options: dict[str, Any]) -> Any:
    """Return the policy and schema of a run."""
    from stream_anon.cli.prepare import prepare

    text = POLICY % {**options, "delay": f"{options['bound']}s", "records": 100_000_000, "algorithm": "cail"}
    text = text.replace("on_deadline: suppress", "on_deadline: suppress, max_buffer: 5000000")
    if options["ledger"]:
        text = text.replace("client:", f"ledger: {options['group']}-ledger, client:")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.yaml"
        file.write_text(text)
        return prepare(file)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def worker_of(options: dict[str, Any], observer: Any = None) -> Any:
    """Return a worker with warm kernels."""
    from stream_anon.worker.factory import core_of, kafka_of, settings_of, transport_of
    from stream_anon.worker.loop import Worker

    loaded, schema = policy_of(options)
    core = core_of(schema)
    rng = random.Random(2)
    values = [record(rng, number) for number in range(2_000)]
    ref = np.stack([np.zeros(len(values), np.int64), np.arange(len(values))], axis=1)
    engine = core.engine()
    engine.push(core.encode(values, ref, np.zeros(len(values))).batch, 0.0)
    engine.flush()
    return Worker(transport_of(kafka_of(loaded.policy)), core, settings_of(loaded.policy), observer)


def gone(answers: Any) -> None:
    """End this process at once, as a kill would, after its answer was sent."""
    answers.close()
    answers.join_thread()
    os._exit(0)


def work(options: dict[str, Any], answers: Any) -> None:
    """Work on what comes until the time is up, then be gone without a word."""
    from stream_anon.observe.observer import Observer

    class Watch(Observer):
        records = late = rows_suppressed = commits = 0
        lost = 0.0

        def __init__(self) -> None:
            self.written: list[int] = []

        def published(self, reasons: Any, sizes: Any, delays: Any, ages: Any, losses: Any) -> None:
            self.records += len(delays)
            self.lost += float((np.asarray(losses).mean(axis=1) * np.asarray(sizes)).sum())

        def missed(self, records: int) -> None:
            self.late += records

        def suppressed(self, reason: str, records: int) -> None:
            self.rows_suppressed += records

        def ledger(self, partition: int, beside: int, whole: int) -> None:
            self.written.append(whole)

        def transaction(self, result: str, seconds: float) -> None:
            self.commits += 1

    watch = Watch()
    worker = worker_of(options, watch)
    while not worker.ready:
        worker.step()
    answers.put("ready")
    base, most, memory, paused, longest = resident(), 0, 0, 0.0, 0.0
    began, cpu = time.monotonic(), time.process_time()
    until = began + 4 + options["seconds"] + 1.0
    while time.monotonic() < until:
        start = time.monotonic()
        worker.step()
        took = time.monotonic() - start
        longest = max(longest, took)
        if worker.throttle.paused:
            paused += took
        if worker.state.waiting > most:
            most, memory = worker.state.waiting, resident()
    answers.put(
        {
            "published": watch.records,
            "paused_seconds": round(paused, 2),
            "deadlines_missed": watch.late,
            "suppressed": watch.rows_suppressed,
            "most_waiting": most,
            "bytes_per_waiting_row": round((memory - base) / max(most, 1)),
            "loss": round(watch.lost / max(watch.records, 1), 4),
            "transactions": watch.commits,
            "ledger_bytes": sum(watch.written),
            "largest_ledger": max(watch.written, default=0),
            "longest_round_seconds": round(longest, 2),
            "cpu_us_per_record": round(1e6 * (time.process_time() - cpu) / max(watch.records, 1), 1),
        }
    )
    gone(answers)


def succeed(options: dict[str, Any], answers: Any) -> None:
    """Take over, and tell how long it took to be given the partitions back, and to read again what waits."""
    worker = worker_of(options)
    worker._transport.renew()
    answers.put("ready")
    began = time.monotonic()
    given = restored = None
    while (
        restored is None or not worker.state.caught_up or any(p.text is None for p in worker.state.partitions.values())
    ):
        polled_before = worker.ownership.membership
        start = time.monotonic()
        worker.step()
        if given is None and polled_before is None and worker.ownership.membership is not None:
            given = start
        if restored is None and worker.ready:
            restored = time.monotonic()
        if time.monotonic() - began > 120:
            raise SystemExit("nothing was restored")
    end = time.monotonic()
    assert given is not None
    answers.put(
        {
            "waiting": worker.state.waiting,
            "restore_seconds": round(restored - given, 3),
            "read_again_seconds": round(end - restored, 3),
        }
    )
    worker._transport.close()
    gone(answers)


def engine_alone(options: dict[str, Any]) -> float:
    """Return the loss of the engine alone: the same records, at the same times, on a clock of its own."""
    from stream_anon.worker.factory import core_of

    _, schema = policy_of({**options, "ledger": ""})
    core = core_of(schema)
    engine, rng = core.engine(), random.Random(1)
    count, batch = int(options["rate"] * options["seconds"]), int(options["rate"] / 20)
    some = [record(rng, number) for number in range(min(count, 50_000))]
    lost, rows = 0.0, 0
    for first in range(0, count, batch):
        now = first / options["rate"]
        numbers = np.arange(first, min(count, first + batch))
        ref = np.stack([numbers % options["partitions"], numbers], axis=1)
        values = [some[number % len(some)] for number in numbers.tolist()]
        for outcome in (engine.push(core.encode(values, ref, np.full(len(values), now)).batch, now), engine.tick(now)):
            for group in outcome.groups:
                lost, rows = lost + float(np.mean(group.losses)) * len(group), rows + len(group)
    return lost / max(rows, 1)


def measure(bootstrap: str, arguments: argparse.Namespace, store: str) -> dict[str, Any]:
    """One run of a worker and its successor."""
    from stream_anon.kafka.clients.kafka_python.topics import create_topics

    name = f"bench-{uuid4().hex[:8]}"
    topics = {name: arguments.partitions, f"{name}-out": 1}
    if store == "topic":
        topics[f"{name}-ledger"] = arguments.partitions
    create_topics(bootstrap, topics, compacted=[f"{name}-ledger"])
    options = {"bootstrap": bootstrap, "client": arguments.client, "group": name, "input": name}
    options |= {"output": f"{name}-out", "ledger": store == "topic", "bound": arguments.bound, "more": ""}
    options |= {"seconds": arguments.bounds * arguments.bound, "partitions": arguments.partitions}
    options["rate"] = arguments.rate
    in_process(succeed, options)  # writes the first ledgers
    empty = in_process(succeed, options)
    count = int(arguments.rate * options["seconds"])
    feed = threading.Thread(target=fill, args=(bootstrap, name, count, arguments.partitions, arguments.rate))
    result: dict[str, Any] = in_process(work, options, feed.start)
    feed.join()
    time.sleep(10)  # the session of the worker that is gone
    full = in_process(succeed, options)
    alone = engine_alone(options)
    output = result["published"] * 250
    return {
        **result,
        "loss_of_the_engine_alone": round(alone, 4),
        "loss_ratio": round(result["loss"] / alone, 3) if alone else None,
        "ledger_bytes_per_second": round(result["ledger_bytes"] / options["seconds"]),
        "write_amplification": round(result["ledger_bytes"] / max(output, 1), 3),
        "successor_of_an_empty_ledger": empty,
        "successor": full,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rate", type=float, default=20_000, help="records a second, over all partitions")
    parser.add_argument("--bound", type=int, default=10, help="seconds")
    parser.add_argument("--bounds", type=float, default=2.5, help="how many bounds the records come for")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--stores", nargs="+", default=["topic", "inline"], choices=["topic", "inline"])
    parser.add_argument("--client", default="confluent-kafka", choices=["kafka-python", "confluent-kafka"])
    arguments = parser.parse_args()

    from stream_anon.kafka.local_broker.broker import LocalBroker

    broker = None if os.environ.get("KAFKA_BOOTSTRAP") else LocalBroker().start()
    try:
        bootstrap = os.environ.get("KAFKA_BOOTSTRAP") or broker.bootstrap  # type: ignore[union-attr]
        result: dict[str, Any] = {name: getattr(arguments, name) for name in ("client", "rate", "bound", "partitions")}
        result |= {store: measure(bootstrap, arguments, store) for store in arguments.stores}
        result["peak_mb_of_children"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
    finally:
        if broker is not None:
            broker.remove()
    if arguments.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:24} {value}")


if __name__ == "__main__":
    main()
