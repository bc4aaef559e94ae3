"""The kill test: a producer, workers, a killer; then the input against the output as both kinds of reader see it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from cluster import Cluster
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import CoordinatorNotAvailableError, KafkaError
from line import Line
from nursery import Member
from producer import MARK, PARTITIONS, Producer
from strikes import ACCESS_LISTS, FAULTS, PATIENCE, usual

from stream_anon.cli.prepare import prepare
from stream_anon.kafka.clients import client_of
from stream_anon.kafka.clients.kafka_python.topics import await_topics
from stream_anon.kafka.local_broker.broker import LocalBroker
from stream_anon.kafka.transport import MARK as SEALED
from stream_anon.worker.ledger.ledger import Place
from stream_anon.worker.ledger.store import Found
from stream_anon.worker.ledger.topic import store_of

HERE = Path(__file__).parent
ALLOWED = {"age", "zip", "illness", "rid", "_anon"}
MUST_BE_ZERO = ("lost", "doubled", "under_policy", "rows_in_two_groups_uncommitted", "leaked_fields", "bad_exits")
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "5000", "min.cleanable.dirty.ratio": "0.01"}
K = 5
CLIENTS = ["kafka-python", "confluent-kafka"]
OUTLIVES = 60_000  # milliseconds
PAUSE = 1.0  # seconds between two starts: without a broker each worker ends at once


class Chaos:
    """Topics, processes, and what is done to them."""

    def __init__(self, kafka: LocalBroker | Cluster | str, options: argparse.Namespace, line: Line | None) -> None:
        self.broker = kafka if isinstance(kafka, LocalBroker) else None
        self.cluster = kafka if isinstance(kafka, Cluster) else None
        self.bootstrap = bootstrap = kafka if isinstance(kafka, str) else kafka.bootstrap
        self.options, self.line = options, line
        copies = self.cluster.replication if self.cluster else 1
        name = f"chaos-{uuid4().hex[:8]}"
        self.topics = {role: f"{name}-{role}" for role in ("in", "out", "dead")}
        self.partitions = {"in": PARTITIONS, "out": 2, "dead": 2, "ledger": PARTITIONS}
        self.group = name
        self.folder = Path(tempfile.mkdtemp(prefix="chaos-"))
        text = (HERE / "policy.yaml").read_text().replace("GROUP", name)
        text = text.replace("BOOTSTRAP", line.bootstrap if line else bootstrap)
        text = text.replace("CLIENT", "auto" if options.client == "mixed" else options.client)
        text = text.replace("LEDGER", f"ledger: {name}-ledger" if options.ledger else "")
        for word, role in (("INPUT", "in"), ("OUTPUT", "out"), ("DEAD", "dead")):
            text = text.replace(word, self.topics[role])
        self.policy = self.folder / "policy.yaml"
        self.policy.write_text(text)
        admin = self.admin()
        admin.create_topics([NewTopic(t, self.partitions[r], copies) for r, t in self.topics.items()])
        if options.ledger:  # compacted all the time: what is pointed to must outlive it
            self.topics["ledger"] = f"{name}-ledger"
            admin.create_topics([NewTopic(f"{name}-ledger", PARTITIONS, copies, topic_configs=COMPACTED)])
        await_topics(admin, list(self.topics.values()))
        admin.close()
        self.producer = Producer(bootstrap, self.topics["in"], options.rate)
        self.random = random.Random(options.seed)
        self.workers: list[Member] = []
        self.events: Counter[str] = Counter()
        self.restarts = self.started = 0
        self.begun = 0.0
        self.in_topic = self.left_announced = 0
        self.members = ""

    def reader(self, **options: object) -> KafkaConsumer:
        """A consumer beside the workers that outlives a broker which takes its time to come back."""
        return KafkaConsumer(bootstrap_servers=self.bootstrap, bootstrap_timeout_ms=OUTLIVES, **options)

    def admin(self) -> KafkaAdminClient:
        """The same for an admin client."""
        return KafkaAdminClient(bootstrap_servers=self.bootstrap, bootstrap_timeout_ms=OUTLIVES)

    def start_worker(self) -> Member:
        client = CLIENTS[self.started % 2] if self.options.client == "mixed" else None
        self.started, self.begun = self.started + 1, time.monotonic()
        how = {"policy": self.policy, "dwell": self.options.dwell, "client": client}
        self.workers.append(Member({**how, "announce": not self.options.no_announce}, self.folder / "workers.log"))
        return self.workers[-1]

    def supervise(self, seconds: float) -> None:
        """Wait, and replace workers that ended by themselves."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for process in list(self.workers):
                if process.poll() is not None:
                    self.workers.remove(process)
                    self.restarts += 1
            if len(self.workers) < self.options.workers and time.monotonic() > self.begun + PAUSE:
                self.start_worker()
            time.sleep(0.05)

    def wait_for_work(self, patience: float = 40.0) -> None:
        """Until the workers publish again: a kill does no harm to one that is still waiting for its predecessor."""
        records = 0.9 * self.options.rate  # those of a second
        partitions = self.output
        reader = self.reader(reconnect_backoff_max_ms=1000)
        before, end = None, time.monotonic() + patience
        while time.monotonic() < end:
            self.supervise(0.3)
            try:
                total = sum(reader.end_offsets(partitions).values())
            except KafkaError:  # a broker that was ended may take longer to come back than this client waits
                continue
            before = total if before is None else before
            if total >= before + records:
                break
        else:
            self.events["no_progress"] += 1
        reader.close()
        self.supervise(self.random.uniform(0.0, 1.0))

    def wait_for_members(self, count: int, patience: float = 60.0) -> bool:
        """Wait until so many members share the partitions of the group; tell whether they did."""
        admin, end, whole = self.admin(), time.monotonic() + patience, False
        while not whole and time.monotonic() < end:
            with contextlib.suppress(CoordinatorNotAvailableError):  # a new broker has to make its topic first
                found = admin.describe_groups([self.group])[self.group]
                self.members = f"{found['group_state']}, {len(found['members'])} members"
                whole = found["group_state"] == "Stable" and len(found["members"]) == count
            if not whole:
                self.supervise(0.2)
        admin.close()
        return whole

    @property
    def output(self) -> list[TopicPartition]:
        """The partitions of the output, which may be given more."""
        return [TopicPartition(self.topics["out"], number) for number in range(self.partitions["out"])]

    def ends(self, level: str = "read_committed") -> int:
        """How far one kind of reader can read the output."""
        with contextlib.closing(self.reader(isolation_level=level)) as reader:
            return sum(reader.end_offsets(self.output).values())

    def wait_until_quiet(self, patience: float = 60.0) -> None:
        """Until nothing more is published and no transaction is open: what is left waits for company."""
        before, end = -1, time.monotonic() + patience
        while ((now := self.ends()) != before or self.ends("read_uncommitted") != now) and time.monotonic() < end:
            before = now
            self.supervise(3.0)

    def wait_for_more_than(self, before: int, patience: float = 40.0) -> bool:
        """Whether more is published than `before`, and soon."""
        end = time.monotonic() + patience
        while self.ends() <= before:
            if time.monotonic() > end:
                return False
            self.supervise(0.5)
        return True

    def strike(self) -> None:
        """Do one evil thing."""
        kind = self.options.only or self.random.choice(usual(self))
        self.events[kind] += 1
        FAULTS[kind](self)

    def wait_for_transactions(self, patience: float = 30.0) -> None:
        """Until none is open in the output: one that a killed worker left hides what others committed after it."""
        partitions, ends = self.output, []
        levels = ("read_committed", "read_uncommitted")
        readers = [self.reader(isolation_level=level) for level in levels]
        end = time.monotonic() + patience
        while True:
            ends = [reader.end_offsets(partitions) for reader in readers]
            if ends[0] == ends[1]:
                break
            assert time.monotonic() < end, f"a transaction stays open: {ends}"
            time.sleep(0.2)
        for reader in readers:
            reader.close()

    def read(self, level: str) -> list[tuple[bytes | None, list[object], dict[str, object], bytes]]:
        """The whole output as one kind of reader sees it."""
        reader = self.reader(isolation_level=level, auto_offset_reset="earliest")
        partitions = self.output
        reader.assign(partitions)
        reader.seek_to_beginning(*partitions)
        ends = reader.end_offsets(partitions)
        found, quiet = [], 0
        while quiet < 10 and any(reader.position(tp) < ends[tp] for tp in partitions):
            batch = reader.poll(timeout_ms=500, max_records=5000)
            quiet = 0 if batch else quiet + 1
            for records in batch.values():
                found += [(r.key, list(r.headers), json.loads(r.value), r.value) for r in records]
        reader.close()
        return found

    def waiting(self) -> set[tuple[int, int]]:
        """Rows that the ledgers leave to a successor."""
        loaded, schema = prepare(self.policy)
        kind = client_of(loaded.policy.kafka.client).transport  # type: ignore[union-attr]
        transport = kind(self.bootstrap, self.group, self.topics["in"], transactional_id="reader")
        facts, bounds = transport.facts(self.topics["in"]), transport.bounds(self.topics["in"])
        store, left = store_of(transport, self.topics.get("ledger"), schema.keys.ledger), set()
        self.in_topic = sum(end - first for first, end in bounds.values())
        for number, committed in transport.ledgers(range(self.partitions["in"])).items():
            if committed is None:
                left |= {(number, offset) for offset in range(*bounds[number])}
                continue
            place = Place(facts.cluster_id, facts.topic_id, number, self.group)
            found = store.find({place: committed})[place]
            assert isinstance(found, Found), f"the ledger of partition {number} is {found}"
            ledger = found.ledger
            left |= {(number, offset) for offset in ledger.waiting.tolist()}
            left |= {(number, offset) for offset in range(ledger.position, bounds[number][1])}
            rest = [tuple(member) for members in ledger.announced for member in members.tolist()]
            self.left_announced += len(rest)
            left |= set(rest)
        transport.close()
        return left

    def stop_workers(self) -> tuple[int, float]:
        """SIGTERM to all: how many did not end with 0, and how long the slowest took."""
        began, bad = time.monotonic(), 0
        for process in self.workers:
            process.send_signal(signal.SIGTERM)
        for process in self.workers:
            try:
                bad += process.wait(PATIENCE) != 0
            except subprocess.TimeoutExpired:
                self.ask_where([process])
                process.kill()
                bad += 1
        return bad, time.monotonic() - began

    def ask_where(self, workers: Sequence[Member]) -> None:
        """Have workers that should have gone on write their stacks into the log, and say where that is."""
        for process in workers:
            process.send_signal(signal.SIGUSR2)
        time.sleep(1.0)
        sys.stderr.write(f"{self.members}: see {self.folder}/workers.log\n")

    def close(self) -> None:
        for process in self.workers:
            if process.poll() is None:
                process.kill()
                process.wait()


def judge(chaos: Chaos, places: dict[int, tuple[int, int]]) -> dict[str, object]:
    """The input against the output."""
    chaos.wait_for_transactions()
    committed, uncommitted = chaos.read("read_committed"), chaos.read("read_uncommitted")
    times = Counter(record["rid"] for _, _, record, _ in committed)
    groups: dict[str, list[dict[str, object]]] = defaultdict(list)
    for _, _, record, _ in committed:
        groups[record["_anon"]["group"]].append(record["_anon"])  # type: ignore[index]
    under = sum(1 for rows in groups.values() if len(rows) != rows[0]["size"] or rows[0]["subjects"] < K)  # type: ignore[operator]
    seen = defaultdict(set)
    for _, _, record, _ in uncommitted:
        seen[record["rid"]].add(record["_anon"]["group"])  # type: ignore[index]
    leaked = sum(
        1
        for key, headers, record, raw in uncommitted
        if set(record) - ALLOWED or MARK.encode() in raw or told(headers) or key != record["_anon"]["group"].encode()  # type: ignore[index]
    )
    left = chaos.waiting()
    lost = sorted(place for number, place in places.items() if number not in times and place not in left)
    return {
        "lost": len(lost),
        "lost_stretches": stretches(lost),
        "published_and_left": sum(1 for number, place in places.items() if number in times and place in left),
        "doubled": sum(1 for count in times.values() if count > 1),
        "under_policy": under,
        "rows_in_two_groups_uncommitted": sum(1 for g in seen.values() if len(g) > 1),
        "leaked_fields": leaked,
        "left_for_successor": len(left),
        "left_announced": chaos.left_announced,
        "records_in_topic": chaos.in_topic,
        "published": len(times),
        "uncommitted_records": len(uncommitted),
    }


def told(headers: list[tuple[str, bytes]]) -> bool:
    """Whether headers hold anything but a sealed mark."""
    return any(name != SEALED or MARK.encode() in value for name, value in headers)


def stretches(places: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Neighbouring places as (partition, first offset, last offset)."""
    found: list[tuple[int, int, int]] = []
    for partition, offset in places:
        if found and found[-1][0] == partition and found[-1][2] == offset - 1:
            found[-1] = (partition, found[-1][1], offset)
        else:
            found.append((partition, offset, offset))
    return found


def run(options: argparse.Namespace) -> dict[str, object]:
    given, line = options.bootstrap or os.environ.get("KAFKA_BOOTSTRAP"), None
    own: LocalBroker | Cluster | None = None
    if options.brokers > 1:
        own = Cluster(unclean=options.unclean).start()
    elif not given:
        own = LocalBroker()
        with (own.folder / "server.properties").open("a") as settings:
            settings.write(ACCESS_LISTS)
        line = Line(own) if options.line else None
        own.start()
    chaos = Chaos(own or given, options, line)
    try:
        producer = chaos.producer
        for _ in range(options.workers):
            chaos.start_worker()
        producer.start()
        began = time.monotonic()
        for _ in range(options.kills):
            chaos.wait_for_work()
            chaos.strike()
        seconds = time.monotonic() - began
        producer.finish()
        # a member whose answer was lost stays in the group, unknown to anybody, until the rebalance time-out
        whole = chaos.wait_for_members(options.workers, 180.0 if line else 60.0)
        if not whole:
            chaos.ask_where(chaos.workers)
        chaos.wait_until_quiet()
        before = chaos.ends()
        for _ in range(500):
            producer.one()
        taken = producer.flush()
        still_consuming = chaos.wait_for_more_than(before)
        bad_exits, stop_seconds = chaos.stop_workers()
        result = judge(chaos, producer.places())
        return {
            **result,
            "kills": options.kills,
            "workers": options.workers,
            "client": options.client,
            "ledger_topic": options.ledger,
            "scene": scene_of(options),
            "events": dict(chaos.events),
            "records": taken,
            "records_per_second": round((taken - 500) / seconds),
            "still_consuming": still_consuming,
            "whole": whole,
            "members": chaos.members,
            "ended_by_themselves": chaos.restarts - chaos.events["kill"] - chaos.events["rebalance"],
            "bad_exits": bad_exits,
            "stop_seconds": round(stop_seconds, 1),
        }
    finally:
        chaos.close()
        if own is not None:
            own.remove()


def scene_of(options: argparse.Namespace) -> str:
    """Return where it was played."""
    if options.brokers > 1:
        return "unclean" if options.unclean else "three"
    return "line" if options.line else "one"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--client", default="kafka-python", choices=[*CLIENTS, "mixed"])
    parser.add_argument("--rate", type=float, default=1_100)
    parser.add_argument("--dwell", type=float, default=0.05, help="seconds between sending and committing")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bootstrap", default="")
    parser.add_argument("--broker-restarts", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--line", action="store_true", help="faults of the line between workers and broker, too")
    parser.add_argument("--only", choices=list(FAULTS), help="one kind of failure alone")
    parser.add_argument("--ledger", action="store_true", help="keep ledgers in a topic of their own, compacted often")
    parser.add_argument("--brokers", type=int, default=1, choices=[1, 3], help="nodes of the cluster")
    parser.add_argument("--unclean", action="store_true", help="copies that were left behind may lead: data are lost")
    parser.add_argument("--no-announce", action="store_true", help="the check must then fail")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(parse())) + "\n")
