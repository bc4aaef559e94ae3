"""The demo on a real Kafka: a producer and a reader with a worker between them, under the same witness."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from threading import Event

import msgspec
import numpy as np

from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Reason, release
from stream_anon.core.record_template import ENVELOPE
from stream_anon.core.schema import Schema
from stream_anon.demo.cluster import INPUT, NUMBER, OUTPUT, DemoCluster
from stream_anon.demo.performance import STEP, BeforeAfter, Performance
from stream_anon.demo.witness import Check
from stream_anon.kafka.clients.kafka_python.ends import Ends
from stream_anon.observe.tally import Tally

_ASK_EVERY = 0.5  # seconds between looks at the worker's metrics
_PATIENCE = 20.0  # seconds beyond the bound for the last records to leave


class KafkaStage(Performance):
    """A demo on Kafka. Delays are end to end: from before a record is produced until its group is read."""

    def __init__(
        self,
        cluster: DemoCluster,
        schema: Schema,
        rate: float,
        seconds: float,
        seed: int,
        clock: Callable[[], float],
        stopped: Event,
    ) -> None:
        super().__init__(schema, rate, seconds, seed, clock, stopped)
        self.tally = Tally([column.name for column in schema.quasi], schema.requirements.k, schema.counts)
        self._source = ((n, b'{"%s":%d,' % (NUMBER.encode(), n) + record[1:]) for n, record in self._source)
        self._cluster = cluster
        self._ends = Ends(cluster.bootstrap, INPUT, OUTPUT)
        self._encoder = Encoder(schema)
        self._inside: dict[int, tuple[bytes, float]] = {}
        self._parts: dict[str, list[bytes]] = defaultdict(list)  # groups that were read in part
        self._asked = float("-inf")
        self._exit_code: int | None = None

    @property
    def waiting(self) -> int:
        """The number of records on their way."""
        return self.tally.consumed - self.tally.published - self.tally.suppressed - self.tally.rejected.total()

    def checks(self) -> list[Check]:
        """Return the witness's checks, and whether groups came whole and the worker ended in good order."""
        whole = Check("every group whole", not self._parts, f"groups read in part: {len(self._parts):,}")
        ended = Check("worker ended in good order", self._exit_code == 0, f"exit code {self._exit_code}")
        return [*super().checks(), whole, ended]

    def close(self) -> None:
        """Close the producer and the reader; the cluster is closed by its owner."""
        self._ends.close()

    def _take(self, records: list[tuple[int, bytes]], now: float) -> None:
        self.tally.read(len(records))
        self._inside.update({number: (payload, now) for number, payload in records})
        self._ends.send([payload for _, payload in records])

    def _release_chosen(self) -> None:
        self._read(0.01)
        self._ask()

    def _pause(self) -> float:
        return STEP / 2

    def _finish(self) -> Iterator[None]:
        """Wait for what is on its way, then end the worker: it must leave nothing behind."""
        end = self._clock() + (self.bound or 0.0) + _PATIENCE
        while self.waiting and self._clock() < end:
            self._read(0.1)
            self._ask()
            yield
        self._exit_code = self._cluster.stop_worker()
        while self._read(0.3):
            yield

    def _ask(self) -> None:
        """Ask the worker how many records it rejected or suppressed: the witness cannot see those."""
        if self._clock() - self._asked < _ASK_EVERY:
            return
        self._cluster.check_worker()
        self._asked = self._clock()
        self.tally.suppressed = sum(self._cluster.counts("records_suppressed").values())
        self.tally.rejected = Counter(self._cluster.counts("records_rejected"))

    def _read(self, timeout: float) -> bool:
        lines = self._ends.read(timeout)
        now = self._clock()
        for line in lines:
            mark = msgspec.json.decode(line)[ENVELOPE]
            part = self._parts[mark["group"]]
            part.append(line)
            if len(part) == mark["size"]:
                self._publish(self._parts.pop(mark["group"]), now)
        return bool(lines)

    def _publish(self, lines: list[bytes], now: float) -> None:
        numbers = [msgspec.json.decode(line)[NUMBER] for line in lines]
        self.last = BeforeAfter(*self.witness.leave(numbers, lines, now))
        known = [self._inside.pop(number) for number in numbers if number in self._inside]
        if len(known) == len(lines):
            payloads, arrived = zip(*known, strict=True)
            ref = np.stack([np.zeros(len(numbers), dtype=np.int64), np.array(numbers)], axis=1)
            batch = self._encoder.encode(payloads, ref, np.array(arrived)).batch
            self.tally.publish([release(batch, self.schema, Reason.READY)], now)
