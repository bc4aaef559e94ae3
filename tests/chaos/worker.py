"""One worker process of the chaos run. `--no-announce` and `--dwell` exist here only, not in the program."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stream_anon.cli.prepare import prepare
from stream_anon.cli.ready import make_ready
from stream_anon.io.kafka import KafkaTransport
from stream_anon.io.transport import Outgoing
from stream_anon.observe.logs import log_to
from stream_anon.runtime.build import kafka_of, parts_of, settings_of, transactional_id
from stream_anon.runtime.worker import Worker


class Dwelling(KafkaTransport):
    """Stays a while between sending and committing: that is where a kill does most harm."""

    dwell = 0.0

    def send(self, records: Sequence[Outgoing]) -> None:
        super().send(records)
        if self.dwell and records:
            self._producer.flush(timeout=30)
            time.sleep(self.dwell)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("policy", type=Path)
    parser.add_argument("--no-announce", action="store_true")
    parser.add_argument("--dwell", type=float, default=0.0)
    options = parser.parse_args()
    log_to()
    loaded, schema = prepare(options.policy)
    make_ready(loaded.policy.algorithm, quiet=True)
    kafka = kafka_of(loaded.policy)
    transport = Dwelling(
        kafka.bootstrap,
        kafka.group,
        kafka.input,
        transactional_id=transactional_id(kafka.group, None),
        options=kafka.options,
    )
    transport.dwell = options.dwell
    settings = replace(settings_of(loaded.policy), announce=not options.no_announce)
    worker = Worker(transport, parts_of(schema), settings)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
