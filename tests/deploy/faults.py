"""Workers in which something is wrong, each on topics of its own, beside a trickle of records that makes it show."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from stream_anon.cli.prepare import prepare
from stream_anon.kafka.clients.kafka_python.transport import KafkaTransport
from stream_anon.kafka.transport import Outgoing
from stream_anon.observe.metrics import Metrics
from stream_anon.observe.server import StatusServer
from stream_anon.worker.factory import core_of, kafka_of, settings_of
from stream_anon.worker.loop import Worker

POLICY = """
version: 1
name: trial
secret: a secret only for the tests, of no value
subject: person
attributes:
  person: {{role: identifier}}
  age: {{role: quasi_identifier, type: integer, hierarchy: {{kind: interval, range: [0, 99], snap: none}}}}
privacy: [{{model: k_anonymity, k: {k}}}]
stream: {stream}
algorithm: {{name: fads}}
kafka: {{bootstrap: "{bootstrap}", group: {name}, input: {name}-in, output: {name}-out, dead_letter: {name}-dead}}
"""
SOON = "{max_delay: {time: 1s}}"
USUAL = "{max_delay: {time: 4s}}"
HOLD = "{max_delay: {time: 4s}, on_deadline: hold, max_buffer: 40}"


class Slow(KafkaTransport):
    """Stays longer than the bound between sending and committing."""

    def send(self, records: Sequence[Outgoing]) -> None:
        super().send(records)
        if records:
            time.sleep(2.5)


class Fault:
    """One worker in a thread, with its metrics on a port."""

    def __init__(self, bootstrap: str, name: str, folder: Path) -> None:
        self.bootstrap, self.name, self._folder = bootstrap, name, folder
        self.input = f"{name}-in"
        self.topics = [f"{name}-{end}" for end in ("in", "out", "dead")]
        self.address = ""
        self._worker: Worker | None = None
        self._thread: threading.Thread | None = None
        self._status: StatusServer | None = None

    def policy(self, stream: str = USUAL, k: int = 3) -> Path:
        file = self._folder / f"{self.name}.yaml"
        file.write_text(POLICY.format(bootstrap=self.bootstrap, name=self.name, stream=stream, k=k))
        return file

    def worker(self, policy: Path, kind: type[KafkaTransport] = KafkaTransport) -> tuple[Worker, Metrics, Any]:
        loaded, schema = prepare(policy)
        kafka, settings = kafka_of(loaded.policy), settings_of(loaded.policy)
        transport = kind(self.bootstrap, kafka.group, kafka.input, transactional_id=f"{self.name}-0")
        metrics = Metrics(self.name, schema.fingerprint, settings.delay, ["age"])
        return Worker(transport, core_of(schema), replace(settings, drain_seconds=0.0), metrics), metrics, transport

    def start(self, policy: Path, kind: type[KafkaTransport] = KafkaTransport) -> Fault:
        worker, metrics, _ = self.worker(policy, kind)
        self._worker, self._thread = worker, threading.Thread(target=worker.run, daemon=True)
        self._status = StatusServer(metrics.registry, lambda: True, lambda: worker.ready).start()
        self.address = f"127.0.0.1:{self._status.port}"
        self._thread.start()
        return self

    def commit_without_a_ledger(self) -> None:
        """What a tool does that knows nothing of ledgers."""
        tool = KafkaConsumer(bootstrap_servers=self.bootstrap, group_id=self.name, enable_auto_commit=False)
        tp = TopicPartition(self.input, 0)
        tool.assign([tp])
        tool.commit({tp: OffsetAndMetadata(0, "", -1)})
        tool.close(autocommit=False)

    def announce_and_leave(self, policy: Path) -> None:
        """A worker that dies with a group announced and not published."""
        worker, _, transport = self.worker(policy)
        end = time.monotonic() + 30
        while not any(p.announced for p in worker.state.partitions.values()):
            assert time.monotonic() < end, "no group was announced"
            worker.step()
        transport.close()

    def delete_the_input(self) -> None:
        """What retention does, at once."""
        tp = TopicPartition(self.input, 0)
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        reader = KafkaConsumer(bootstrap_servers=self.bootstrap)
        admin.delete_records({tp: reader.end_offsets([tp])[tp]})
        reader.close()
        admin.close()

    def stop(self) -> None:
        if self._worker and self._thread and self._status:
            self._worker.stop()
            self._thread.join(20)
            self._status.close()


class Trickle:
    """Records into many topics, some at a time, until it is stopped."""

    def __init__(self, bootstrap: str, topics: dict[str, Callable[[int], bytes]], at_a_time: int = 2) -> None:
        self._producer = KafkaProducer(bootstrap_servers=bootstrap)
        self._topics, self._at_a_time, self._stopped = topics, at_a_time, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopped.wait(0.1):
            for number in range(number, number + self._at_a_time):  # noqa: B020 - it counts on
                for topic, record in self._topics.items():
                    self._producer.send(topic, value=record(number))
            number += 1

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(10)
        self._producer.close()


def people(number: int) -> bytes:
    """Somebody else each time."""
    return json.dumps({"person": f"p{number}", "age": number % 90}).encode()


def one_person(number: int) -> bytes:
    """Always the same: no group of k people will ever be found."""
    return json.dumps({"person": "p", "age": number % 90}).encode()


def partly_broken(number: int) -> bytes:
    """Every fifth is no JSON."""
    return b"{" if number % 5 == 0 else people(number)
