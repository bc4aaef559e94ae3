"""The producer of the kill test: a steady stream of numbered records that remembers where each of them stands."""

from __future__ import annotations

import json
import random
import threading
import time

from kafka import KafkaProducer

MARK = "LEAK"
"""What must never come out."""

PARTITIONS = 4


class Producer(threading.Thread):
    """A steady stream of records, each with a number of its own and a name that must never come out."""

    def __init__(self, bootstrap: str, topic: str, rate: float) -> None:
        super().__init__(daemon=True)
        self._client = KafkaProducer(
            bootstrap_servers=bootstrap, linger_ms=20, delivery_timeout_ms=120_000, metadata_max_age_ms=3_000
        )
        self._topic, self._rate = topic, rate
        self._spread = PARTITIONS
        self.sent = 0
        self.futures: list[object] = []
        self.done = threading.Event()
        self._random = random.Random(7)

    def run(self) -> None:
        began, start = time.monotonic(), self.sent
        while not self.done.is_set():
            self._spread = max(PARTITIONS, len(self._client.partitions_for(self._topic) or ()))  # more may be added
            due = start + int((time.monotonic() - began) * self._rate)
            while self.sent < due:
                self.one()
            time.sleep(0.01)

    def one(self) -> None:
        rng, number = self._random, self.sent
        record = {
            "person": f"{MARK}-{number}",
            "name": f"{MARK}-{rng.random()}",
            "age": rng.randrange(100),
            "zip": f"{rng.randrange(1000):03}",
            "illness": rng.choice("abcdefgh"),
            "rid": number,
            "undeclared": MARK,
        }
        future = self._client.send(
            self._topic,
            value=json.dumps(record).encode(),
            key=f"{MARK}-key".encode(),
            headers=[("h", MARK.encode())],
            partition=number % self._spread,
        )
        self.futures.append(future)
        self.sent += 1

    def finish(self) -> int:
        """Records that the broker took."""
        self.done.set()
        self.join()
        return self.flush()

    def flush(self) -> int:
        self._client.flush(timeout=120)
        return len(self.places())

    def places(self) -> dict[int, tuple[int, int]]:
        """Partition and offset of every record that the broker took, by its number."""
        taken = ((n, f.value) for n, f in enumerate(self.futures) if f.is_done and not f.failed())  # type: ignore[attr-defined]
        return {number: (kept.partition, kept.offset) for number, kept in taken}
