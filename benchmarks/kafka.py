"""The worker against a bare copy: same client, same broker, same records, in turns; then its delay at half the load.

Prints one JSON line with --json. The more rows wait (--window), the more the choice of company costs: with many it is
the algorithm that is measured, with few what the worker adds to its client. KAFKA_BOOTSTRAP names a broker, else a
local one is started.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

# This file is called like the client's package, which has to be found first.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).parent.resolve()]

import numpy as np  # noqa: E402

POLICY = """
version: 1
name: benchmark
secret: a-secret-of-the-benchmark-of-no-value
subject: person
attributes:
  person: {role: identifier}
  age: {role: quasi_identifier, type: integer, hierarchy: {kind: interval, range: [0, 99], snap: [5, 10]}}
  zip: {role: quasi_identifier, type: category, hierarchy: {kind: prefix, length: 4}}
  gender: {role: quasi_identifier, type: category, hierarchy: {kind: flat, values: [f, m, o]}}
  illness: {role: sensitive, type: category}
  note: {role: insensitive}
privacy: [{model: k_anonymity, k: 10}]
stream: {max_delay: {time: %(delay)s, records: %(records)s}, on_deadline: suppress}
algorithm: {name: %(algorithm)s}
kafka: {bootstrap: "%(bootstrap)s", group: "%(group)s", input: "%(input)s", output: "%(output)s",
        client: %(client)s%(more)s}
"""


def record(rng: random.Random, number: int) -> bytes:
    """About 290 bytes."""
    return json.dumps(
        {
            "person": f"person-{number % 500_000:08}",
            "age": rng.randrange(100),
            "zip": f"{rng.randrange(10_000):04}",
            "gender": rng.choice("fmo"),
            "illness": rng.choice(["flu", "asthma", "angina", "gout", "scurvy"]),
            "note": "x" * 160,
        }
    ).encode()


def fill(bootstrap: str, topic: str, count: int, partitions: int, rate: float | None = None) -> None:
    """Write records, all at once or at a rate, with the faster client: it is not what is measured."""
    from confluent_kafka import Producer

    rng = random.Random(1)
    some = [record(rng, number) for number in range(min(count, 50_000))]
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 2_000_000})
    began = time.monotonic()
    for number in range(count):
        if rate and number % 50 == 0:
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
        producer.produce(topic, some[number % len(some)], partition=number % partitions)
        if number % 5_000 == 0:
            producer.poll(0)
    producer.flush()


def copy_confluent(options: dict[str, Any], answers: Any) -> None:
    """Consume, produce in transactions with the offsets: nothing else."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": options["bootstrap"],
            "group.id": options["group"],
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([options["input"]])
    producer = Producer(
        {
            "bootstrap.servers": options["bootstrap"],
            "transactional.id": options["group"],
            "retry.backoff.ms": 5,
            "retry.backoff.max.ms": 20,
            "linger.ms": 5,
            "delivery.report.only.error": True,
        }
    )
    producer.init_transactions(30)
    done, began, cpu = 0, 0.0, 0.0
    while done < options["count"]:
        found = consumer.consume(5_000, 0.2)
        if not found:
            continue
        if not began:
            began, cpu = time.monotonic(), time.process_time()
        producer.begin_transaction()
        offsets = {}
        for message in found:
            producer.produce(options["output"], message.value())
            offsets[message.partition()] = message.offset() + 1
        where = [TopicPartition(options["input"], partition, offset) for partition, offset in offsets.items()]
        producer.send_offsets_to_transaction(where, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        done += len(found)
    answers.put({"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu, "records": done})
    consumer.close()


def copy(options: dict[str, Any], answers: Any) -> None:
    """Consume, produce in transactions with the offsets: nothing else."""
    from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata

    consumer = KafkaConsumer(
        options["input"],
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    producer = KafkaProducer(
        bootstrap_servers=options["bootstrap"],
        transactional_id=options["group"],
        retry_backoff_ms=5,
        linger_ms=5,
        batch_size=131_072,
    )
    producer.init_transactions()
    done, began, cpu = 0, 0.0, 0.0
    while done < options["count"]:
        found = consumer.poll(timeout_ms=200, max_records=2_000)
        if not found:
            continue
        if not began:
            began, cpu = time.monotonic(), time.process_time()
        producer.begin_transaction()
        futures, offsets = [], {}
        for tp, records in found.items():
            futures += [producer.send(options["output"], value=r.value) for r in records]
            offsets[tp] = OffsetAndMetadata(records[-1].offset + 1, "", -1)
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.flush()
        assert not any(future.failed() for future in futures)
        producer.commit_transaction()
        done += len(futures)
    answers.put({"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu, "records": done})
    consumer.close(autocommit=False)
    producer.close()


def work(options: dict[str, Any], answers: Any) -> None:
    """Run the worker until as many rows have left."""
    from stream_anon.cli.prepare import prepare
    from stream_anon.observe.metrics import Metrics
    from stream_anon.worker.collector import calm_collector
    from stream_anon.worker.factory import core_of, kafka_of, settings_of, transport_of
    from stream_anon.worker.loop import Worker

    class Watch(Metrics):
        done = late = steady = 0
        began = cpu = seconds = spent = 0.0

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.delays: list[Any] = []
            self.stages: Counter[str] = Counter()
            self.shares: dict[str, float] = {}

        def consumed(self, records: int) -> None:
            super().consumed(records)
            if not self.began:
                self.began, self.cpu = time.monotonic(), time.process_time()

        def published(self, reasons: Any, sizes: Any, delays: Any, ages: Any, losses: Any) -> None:
            super().published(reasons, sizes, delays, ages, losses)
            self.done += len(delays)
            self.delays.append(delays)
            if self.done <= 0.85 * options["count"]:  # the last rows wait for company that does not come any more
                self.steady = self.done
                self.seconds = time.monotonic() - self.began
                self.spent = time.process_time() - self.cpu
                self.shares = {name: seconds / self.steady for name, seconds in self.stages.items()}

        def clock(self, stage: str, owner: Any, method: str) -> None:
            """Count the processor time of a method, on whichever thread it is called."""
            call = getattr(type(owner), method)

            def timed(*arguments: Any) -> Any:
                began = time.thread_time()
                result = call(*arguments)
                if self.began:
                    self.stages[stage] += time.thread_time() - began
                return result

            setattr(type(owner), method, timed)

        def suppressed(self, reason: str, records: int) -> None:
            super().suppressed(reason, records)
            self.done += records

        def missed(self, records: int) -> None:
            super().missed(records)
            self.late += records

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "policy.yaml"
        ledger = f"ledger: {options['group']}-ledger, " if options["ledger"] else ""
        file.write_text((POLICY % options).replace("client:", f"{ledger}client:"))
        loaded, schema = prepare(file)
    kafka, settings = kafka_of(loaded.policy), settings_of(loaded.policy)
    watch = Watch("benchmark", schema.fingerprint, settings.delay, [c.name for c in schema.quasi])
    transport = transport_of(kafka)
    worker = Worker(transport, _warmed(schema, core_of(schema)), settings, watch)
    for stage, owner, methods in (
        ("poll", transport, ["poll"]),
        ("decode and group", worker.state, ["decode", "push", "tick"]),
        ("plan", worker._planner, ["plan"]),
        ("send", transport, ["send"]),
        ("commit", transport, ["begin", "write", "send_offsets", "commit"]),
        ("apply and report", worker, ["_commit"]),
    ):
        for method in methods:
            watch.clock(stage, owner, method)
    calm_collector()
    answers.put("ready")
    while watch.done < options["count"]:
        worker.step()
    delays = np.concatenate(watch.delays)
    answers.put(
        {
            "seconds": watch.seconds,
            "cpu": watch.spent,
            "records": watch.steady,
            "p50": float(np.quantile(delays, 0.5)),
            "p99": float(np.quantile(delays, 0.99)),
            "max": float(delays.max()),
            "missed": watch.late,
            "stages": watch.shares,
        }
    )
    transport.close()


def _warmed(schema: Any, parts: Any) -> Any:
    """Compile kernels before the clock runs."""
    from stream_anon.core.encode import Encoder

    rng = random.Random(2)
    values = [record(rng, i) for i in range(2_000)]
    ref = np.stack([np.zeros(len(values), np.int64), np.arange(len(values))], axis=1)
    engine = parts.engine()
    engine.push(Encoder(schema).encode(values, ref, np.zeros(len(values))).batch, 0.0)
    engine.flush()
    return parts


def in_process(target: Any, options: dict[str, Any], load: Any = None) -> dict[str, Any]:
    """Run a target on its own, so that its processor time is its own too; `load` begins once it is ready."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=target, args=(options, answers))
    process.start()
    try:
        answer = _wait(process, answers)
        if answer == "ready":
            if load is not None:
                time.sleep(4)
                load()
            answer = _wait(process, answers)
        process.join(30)
        return answer  # type: ignore[no-any-return]
    finally:
        if process.is_alive():
            process.kill()


def _wait(process: Any, answers: Any) -> Any:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        try:
            return answers.get(timeout=1)
        except queue.Empty:
            if not process.is_alive():
                break
    raise SystemExit("a measured process did not answer")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--records", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--delay", default="2s")
    parser.add_argument("--algorithm", default="cail")
    parser.add_argument("--window", type=int, default=1_000, help="rows that wait: max_delay.records of the policy")
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent-kafka"])
    parser.add_argument("--ledger", action="store_true", help="keep ledgers in a topic of their own")
    arguments = parser.parse_args()

    from stream_anon.kafka.clients.kafka_python.topics import create_topics
    from stream_anon.kafka.local_broker.broker import LocalBroker

    broker = None if os.environ.get("KAFKA_BOOTSTRAP") else LocalBroker().start()
    bootstrap = os.environ.get("KAFKA_BOOTSTRAP") or broker.bootstrap  # type: ignore[union-attr]
    try:
        source = f"bench-{uuid4().hex[:8]}"
        create_topics(bootstrap, {source: arguments.partitions})
        fill(bootstrap, source, arguments.records, arguments.partitions)

        def fresh(count: int, topic: str = source) -> dict[str, Any]:
            name = f"bench-{uuid4().hex[:8]}"
            topics = {f"{name}-out": 1, **({f"{name}-ledger": arguments.partitions} if arguments.ledger else {})}
            create_topics(bootstrap, topics, compacted=[f"{name}-ledger"])
            options = {
                "ledger": arguments.ledger,
                "bootstrap": bootstrap,
                "client": arguments.client,
                "group": name,
                "input": topic,
                "output": f"{name}-out",
                "count": count,
                "more": "",
            }
            return {**options, "delay": arguments.delay, "records": arguments.window, "algorithm": arguments.algorithm}

        copies, works = [], []
        bare = copy if arguments.client == "kafka-python" else copy_confluent
        for _ in range(arguments.rounds):
            copies.append(in_process(bare, fresh(arguments.records)))
            works.append(in_process(work, fresh(arguments.records)))
        rates = {
            name: statistics.median(r["records"] / r["seconds"] for r in rounds)
            for name, rounds in (("copy", copies), ("worker", works))
        }
        half, live = rates["worker"] / 2, f"bench-{uuid4().hex[:8]}"
        create_topics(bootstrap, {live: arguments.partitions})
        count = int(half * 12)
        delay = in_process(
            work, fresh(count, live), lambda: fill(bootstrap, live, count, arguments.partitions, rate=half)
        )
    finally:
        if broker is not None:
            broker.remove()
    result = {
        "client": arguments.client,
        "partitions": arguments.partitions,
        "ledger_topic": arguments.ledger,
        "worker_records_per_second": round(rates["worker"]),
        "copy_records_per_second": round(rates["copy"]),
        "ratio": round(rates["worker"] / rates["copy"], 3),
        "worker_records_per_cpu_second": round(statistics.median(r["records"] / r["cpu"] for r in works)),
        "worker_records_per_cpu_second_best": round(max(r["records"] / r["cpu"] for r in works)),
        "cpu_us_per_record": round(statistics.median(1e6 * r["cpu"] / r["records"] for r in works), 1),
        "stage_cpu_us_per_record": {
            stage: round(1e6 * statistics.median(r["stages"][stage] for r in works), 2) for stage in works[0]["stages"]
        },
        "copy_cpu_us_per_record": round(statistics.median(1e6 * r["cpu"] / r["records"] for r in copies), 1),
        "delay_p50": round(delay["p50"], 3),
        "delay_p99": round(delay["p99"], 3),
        "delay_max": round(delay["max"], 3),
        "deadlines_missed": delay["missed"],
        "bound": arguments.delay,
        "window": arguments.window,
        "load_records_per_second": round(half),
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:28} {value}")


if __name__ == "__main__":
    main()
