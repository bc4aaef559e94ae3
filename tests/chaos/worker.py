"""One worker process of the chaos run. Not announcing, and dwelling, exist here only, not in the program."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stream_anon.cli.prepare import prepare
from stream_anon.cli.ready import make_ready
from stream_anon.kafka.transport import Outgoing
from stream_anon.observe.logs import log_to
from stream_anon.observe.observer import Observer
from stream_anon.worker.factory import core_of, kafka_of, settings_of, transport_of
from stream_anon.worker.loop import Worker


def dwelling(transport: Any, dwell: float) -> Any:
    """Stays a while between sending and committing: that is where a kill does most harm."""
    send = transport.send

    def send_and_stay(records: Sequence[Outgoing]) -> None:
        send(records)
        if dwell and records:
            transport._producer.flush(30)
            time.sleep(dwell)

    transport.send = send_and_stay
    return transport


def let_the_clock_jump() -> None:
    """Move the wall clock of this process by up to an hour with every SIGUSR1."""
    true, ahead = time.time, [0.0]
    time.time = lambda: true() + ahead[0]

    def jump(*_: object) -> None:
        ahead[0] = random.uniform(-3_600.0, 3_600.0)

    signal.signal(signal.SIGUSR1, jump)


class Missed(Observer):
    """When, and how many, rows left later than the bound after this worker received them."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, int]] = []

    def missed(self, records: int) -> None:
        self.rows.append((time.time(), records))


def work(policy: Path, dwell: float, client: str | None, announce: bool) -> None:
    """Work until SIGTERM, then tell what was late in a file beside the policy."""
    let_the_clock_jump()
    faulthandler.register(signal.SIGUSR2)  # into the log: where each thread is
    log_to()
    loaded, schema = prepare(policy)
    make_ready(schema, quiet=True)
    kafka = kafka_of(loaded.policy)
    kafka = kafka.model_copy(update={"client": client}) if client else kafka
    transport = dwelling(transport_of(kafka), dwell)
    counted = Missed()
    worker = Worker(transport, core_of(schema), settings_of(loaded.policy), counted)
    if not announce:
        sys.path.append(str(Path(__file__).parents[1] / "worker"))
        from hasty import hasten

        hasten(worker)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()
    (policy.parent / f"missed-{os.getpid()}").write_text(json.dumps(counted.rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("policy", type=Path)
    parser.add_argument("--dwell", type=float, default=0.0)
    options = parser.parse_args()
    work(options.policy, options.dwell, client=None, announce=True)
