"""A rolling restart under load: each worker in turn is told to stop and replaced; then what that did to the records.

A rebalance shows as a gap: a partition of the input of which nothing is published for longer than the usual tick. Rows
that were late must have waited in one; how long the gaps were is what an upgrade costs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import time
from collections import defaultdict

from chaos import Chaos, judge
from chaos import parse as parse_chaos
from kafka import KafkaConsumer, TopicPartition
from producer import PARTITIONS, Producer

from stream_anon.cli.prepare import prepare
from stream_anon.kafka.local_broker.broker import LocalBroker

GAP = 1.0  # seconds without a publication of a partition; its ticks are a tenth of that


def times(chaos: Chaos, role: str, partitions: int) -> dict[int, tuple[int, float]]:
    """Partition and time of every record, by its number."""
    reader = KafkaConsumer(bootstrap_servers=chaos.bootstrap, isolation_level="read_committed")
    where = [TopicPartition(chaos.topics[role], p) for p in range(partitions)]
    reader.assign(where)
    reader.seek_to_beginning(*where)
    ends, found = reader.end_offsets(where), {}
    while any(reader.position(tp) < ends[tp] for tp in where):
        for records in reader.poll(timeout_ms=500, max_records=5_000).values():
            found.update({json.loads(r.value)["rid"]: (r.partition, r.timestamp / 1000) for r in records})
    reader.close()
    return found


def delays(chaos: Chaos, bound: float, calm: float, first: float) -> dict[str, object]:
    """Gaps, and the rows that were late without having waited in one; in the calm before the first restart none is.

    Rows that came before the calm met the workers' own start.
    """
    came, left = times(chaos, "in", PARTITIONS), times(chaos, "out", 2)
    left = {number: place for number, place in left.items() if came[number][1] >= calm}
    missed = [moment for file in chaos.folder.glob("missed-*") for moment in json.loads(file.read_text())]
    published: dict[int, list[float]] = defaultdict(list)
    for number, (_, at) in left.items():
        published[came[number][0]].append(at)
    gaps = {
        partition: [(a, b) for a, b in itertools.pairwise(sorted(moments)) if b - a > GAP]
        for partition, moments in published.items()
    }
    late = [number for number, (_, at) in left.items() if at - came[number][1] > bound]
    unexplained = [
        number
        for number in late
        if not any(a < left[number][1] and came[number][1] < b for a, b in gaps[came[number][0]])
    ]
    ages = sorted(at - came[number][1] for number, (_, at) in left.items())
    lengths = sorted(b - a for found in gaps.values() for a, b in found)
    return {
        "gaps": len(lengths),
        "longest_gap_seconds": round(max(lengths, default=0.0), 2),
        "late_by_record_time": len(late),
        "late_without_a_gap": len(unexplained),
        "late_in_the_calm_before": sum(left[number][1] < first for number in late),
        "deadlines_missed": sum(rows for at, rows in missed if at - bound >= calm),
        "age_p50": round(ages[len(ages) // 2], 2),
        "age_p99": round(ages[len(ages) * 99 // 100], 2),
        "age_max": round(ages[-1], 2),
    }


def run(options: argparse.Namespace) -> dict[str, object]:
    given = options.bootstrap or os.environ.get("KAFKA_BOOTSTRAP")
    own = None if given else LocalBroker().start()
    chaos = Chaos(own or given, options, None)
    bootstrap = chaos.bootstrap
    try:
        for _ in range(options.workers):
            chaos.start_worker()
        producer = Producer(bootstrap, chaos.topics["in"], options.rate)
        assert chaos.wait_for_members(options.workers), chaos.members
        producer.start()
        chaos.wait_for_work()
        calm, bad, stops, seconds = time.time(), 0, [], []
        chaos.supervise(5.0)
        first = time.time()
        for _ in range(options.restarts):
            leaving, began = chaos.workers.pop(0), time.monotonic()
            leaving.send_signal(signal.SIGTERM)
            bad += leaving.wait(60) != 0
            stops.append(time.monotonic() - began)
            chaos.start_worker()
            assert chaos.wait_for_members(options.workers), chaos.members
            seconds.append(time.monotonic() - began)
            chaos.wait_for_work()
        producer.finish()
        chaos.wait_until_quiet()
        taken = producer.flush()
        worse, _ = chaos.stop_workers()
        bound = prepare(chaos.policy)[0].policy.stream.max_delay.time
        assert bound is not None
        return {
            **judge(chaos, producer.places()),
            **delays(chaos, bound, calm, first),
            "bound": bound,
            "restarts": options.restarts,
            "workers": options.workers,
            "client": options.client,
            "records": taken,
            "records_per_second": options.rate,
            "ended_by_themselves": chaos.restarts,
            "bad_exits": bad + worse,
            "stop_seconds_max": round(max(stops), 1),
            "restart_seconds_max": round(max(seconds), 1),
        }
    finally:
        chaos.close()
        if own is not None:
            own.remove()


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--restarts", type=int, default=3)
    mine, rest = own.parse_known_args(arguments)
    return argparse.Namespace(**{**vars(parse_chaos(["--workers", "3", "--dwell", "0", *rest])), **vars(mine)})


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(parse())) + "\n")
