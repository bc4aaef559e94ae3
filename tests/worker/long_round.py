"""A worker whose engine computes for minutes in one call that never returns to the interpreter; run by a test.

Prints the port of its status, and when the long call has begun.
"""

from __future__ import annotations

import hashlib
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from fifo import Fifo, Outcome, fifo_core
from memory_world import World, rows

from stream_anon.observe.metrics import Metrics
from stream_anon.observe.server import StatusServer
from stream_anon.stream.outcome import always
from stream_anon.testing.memory import MemoryTransport
from stream_anon.worker.loop import Worker
from stream_anon.worker.outlook import LagWatch, hear_signals
from stream_anon.worker.settings import WorkerSettings


def say(line: str) -> None:
    """Tell the test."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Long(Fifo):
    """An engine that is quick as long as nothing waits, then lets more records come and computes."""

    def tick(self, now: float, *, more: Callable[[], bool] = always) -> Outcome:
        if self.rows is not None:
            WORLD.produce(*rows(7))
            say("computing")
            hashlib.pbkdf2_hmac("sha256", b"no", b"end", 2_000_000_000)
        return Outcome()


WORLD = World()


def main() -> None:
    metrics = Metrics("long", "abcdef", 2.0, ["age"])
    core = replace(fifo_core(), engine=lambda: Long(3, None, b"policy one"))
    worker = Worker(MemoryTransport(WORLD.broker, "w"), core, WorkerSettings("in", "out"), metrics)

    def age() -> float:
        return time.monotonic() - metrics.last_round

    def ends() -> dict[int, int]:
        return {number: len(log.entries) for number, log in enumerate(WORLD.broker.logs("in"))}

    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    hear_signals([signal.SIGTERM], lambda _: worker.stop())
    LagWatch(age, lambda: worker.positions, ends, metrics.lag).start()
    status = StatusServer(metrics.registry, lambda: age() < 60, lambda: worker.ready, why=lambda: worker.unready)
    say(str(status.start().port))
    while not worker.ready:
        worker.step()
    WORLD.produce(*rows(2))
    while True:
        worker.step()


if __name__ == "__main__":
    main()
