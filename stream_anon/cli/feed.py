"""`stream-anon feed`: send JSON lines, or made-up records, to the policy's input topic."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from stream_anon.cli import output
from stream_anon.cli.interrupt import interruptible
from stream_anon.cli.kafka_setup import prepare_for_kafka
from stream_anon.cli.options import Encoding
from stream_anon.demo import admissions
from stream_anon.errors import StreamAnonError
from stream_anon.formats.text.lines import Lines

_STEP = 0.02  # seconds between the batches of made-up records


def feed(
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    demo: Annotated[bool, typer.Option("--demo", help="Made-up hospital admissions instead of stdin.")] = False,
    rate: Annotated[float, typer.Option(min=0.1, max=1_000_000, help="Made-up records per second.")] = 500,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="How long to send; until stopped by default.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same records.")] = 1,
    encoding: Encoding = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Write records to the policy's input topic, over the same connection as a worker: for trials.

    Lines of stdin are sent as they are. The people of `--demo` do not exist.

    [bold]Examples[/bold]

        stream-anon feed -p policy.yaml < records.jsonl

        stream-anon feed -p policy.yaml --demo --rate 500
    """
    loaded, _ = prepare_for_kafka(policy)
    from stream_anon.kafka.clients import client_of
    from stream_anon.kafka.reachable import require_broker
    from stream_anon.worker.factory import kafka_of

    kafka = kafka_of(loaded.policy)
    require_broker(kafka.bootstrap, kafka.options)
    stopped = Event()
    records = _made_up(rate, seconds, seed, stopped) if demo else _stdin(stopped, encoding)
    feed_of = client_of(kafka.client).feed
    with (
        interruptible(stopped.set) as interrupt,
        closing(feed_of(kafka.bootstrap, kafka.input, kafka.options)) as topic,
    ):
        for batch in records:
            topic.send(batch)
        topic.flush()
    if as_json:
        output.print_json({"topic": kafka.input, "records": topic.taken})
    output.say(f"{kafka.input} took {topic.taken:,} records — next: stream-anon run -p {output.quoted(policy)}")
    interrupt.leave()


def _stdin(stopped: Event, encoding: str | None) -> Iterator[list[bytes]]:
    if sys.stdin is None:
        raise StreamAnonError("stdin must be open: the records come from there; or use --demo")
    lines = Lines(sys.stdin.fileno(), encoding=encoding)
    while not lines.ended and not stopped.is_set():
        read = lines.read(0.2)
        long = [number for number, line in read if not isinstance(line, bytes)]
        if long:
            raise StreamAnonError(f"line {long[0]} is too long for a record")
        yield [line for _, line in read if isinstance(line, bytes)]


def _made_up(rate: float, seconds: float | None, seed: int, stopped: Event) -> Iterator[list[bytes]]:
    """Yield batches at a steady rate; if the broker is slower, the rate is lower."""
    records, began, sent = admissions(seed), time.monotonic(), 0
    while not stopped.wait(_STEP) and (seconds is None or time.monotonic() - began < seconds):
        due = min(int((time.monotonic() - began) * rate) - sent, max(1, int(rate)))
        yield list(islice(records, due))
        sent += due
