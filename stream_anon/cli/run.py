"""`stream-anon run`: one worker on Kafka, or several that share the partitions, until stopped by a signal."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from stream_anon.cli import output
from stream_anon.cli.kafka_setup import prepare_for_kafka, warn_of_exposure
from stream_anon.cli.options import MaxRejected, MaxSuppressed
from stream_anon.cli.ready import make_ready
from stream_anon.cli.run_view import LogFormat, told
from stream_anon.cli.workers import supervise
from stream_anon.errors import PrivacyViolation, TooMuchLost
from stream_anon.observe.limits import Limits
from stream_anon.report.result import NO_SUBJECT

_LAST_LOOK = 60.0
"""Seconds to wait after a violation for somebody to read that it was counted: the count ends with the process."""


class From(StrEnum):
    """The place where to begin a partition that has no committed offset."""

    EARLIEST = "earliest"
    LATEST = "latest"


def run(
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    start: Annotated[
        From | None,
        typer.Option(
            "--from", help="Where to begin partitions without a committed offset although the output was used."
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(help="A name for this worker that it keeps over restarts; no two workers may share it."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=256, help="Processes that share the partitions: about one per core.")
    ] = 1,
    max_rejected: MaxRejected = None,
    max_suppressed: MaxSuppressed = None,
    status_port: Annotated[
        int, typer.Option(help="Port of the live page, /api/status, /metrics, /livez and /readyz; 0 for none.")
    ] = 9464,
    status_host: Annotated[str, typer.Option(help="Address of the status port.")] = "127.0.0.1",
    takeover: Annotated[
        bool,
        typer.Option(
            "--takeover", help="Take the output over from the group or policy that published into it, which has ended."
        ),
    ] = False,
    log_format: Annotated[
        LogFormat, typer.Option("--log-format", help="The log: text in a terminal and JSON elsewhere, unless said.")
    ] = LogFormat.AUTO,
    slot: Annotated[str | None, typer.Option(hidden=True, help="The name of a worker among several.")] = None,
) -> None:
    """Anonymize a Kafka topic: every record leaves in one group, exactly once, within the delay bound, or not at all.

    SIGTERM publishes what satisfies the policy, leaves the rest unread for the next worker, and ends with 0.
    In a terminal it shows a few live lines, elsewhere it logs JSON with a summary every 30 seconds.
    Where most records are rejected, the log and the status say so; `--max-rejected` ends the worker then.

    [bold]Examples[/bold]

        stream-anon run -p policy.yaml

        stream-anon run -p policy.yaml --instance worker-0 --status-host 0.0.0.0

        stream-anon run -p policy.yaml --workers 4
    """
    loaded, schema = prepare_for_kafka(policy)
    from stream_anon.worker.factory import core_of, hold_output, kafka_of, settings_of, transport_of

    if slot is None:
        warn_of_exposure(loaded)
    hold_output(kafka_of(loaded.policy), schema, takeover=takeover)
    if workers > 1:
        more = ["--from", start.value] if start else []
        more += [] if max_rejected is None else ["--max-rejected", str(max_rejected)]
        more += [] if max_suppressed is None else ["--max-suppressed", str(max_suppressed)]
        more += ["--log-format", "text" if log_format.plain else "json"]
        supervise(policy, schema, workers, more, instance, (status_host, status_port), log_format)
        return
    from stream_anon.kafka.clients import client_of
    from stream_anon.observe.live.board import STALLED, Board
    from stream_anon.observe.live.facts import facts_of
    from stream_anon.observe.metrics import Metrics
    from stream_anon.observe.observer import Observers
    from stream_anon.observe.server import StatusServer
    from stream_anon.observe.watch import RejectionWatch
    from stream_anon.worker.collector import calm_collector
    from stream_anon.worker.loop import Worker
    from stream_anon.worker.outlook import LagWatch, hear_signals

    make_ready(schema)
    kafka = kafka_of(loaded.policy)
    settings = settings_of(loaded.policy, start.value if start else None)
    names = [column.name for column in schema.quasi]
    metrics = Metrics(loaded.policy.name, schema.fingerprint, settings.delay, names, schema.counts)
    watch = RejectionWatch(Limits.of(loaded.policy, max_rejected, max_suppressed), lambda: worker.stop())
    transport = transport_of(kafka, slot or instance, static=instance is not None)
    board = Board(facts_of(schema), lambda: worker.standing, lambda: watch.warning, lambda: worker.unready)
    worker = Worker(transport, core_of(schema), settings, Observers(metrics, watch, board))
    received: list[int] = []

    def age() -> float:
        return time.monotonic() - metrics.last_round

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        worker.stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    hear_signals([signal.SIGTERM, signal.SIGINT], lambda _: worker.stop())
    if slot is not None:
        threading.Thread(target=_outlive_nobody, args=[worker.stop], name="parent", daemon=True).start()
    status = None
    if status_port:
        probe = client_of(kafka.client).probe(kafka.bootstrap, kafka.group, kafka.options)
        LagWatch(age, lambda: worker.positions, lambda: probe.ends(kafka.input), metrics.lag).start()
        status = StatusServer(
            metrics.registry,
            lambda: age() < STALLED,
            lambda: worker.ready,
            status_host,
            status_port,
            lambda: watch.warning,
            lambda: worker.unready if age() < STALLED else f"no round has ended for {age():.0f} s",
            board.status,
        ).start()
        output.say(f"live page: {status.url} — also /api/status, /metrics, /livez, /readyz")
    output.say(f"{loaded.policy.name}: {kafka.input} → {kafka.output} — next: read {kafka.output}; stop with SIGTERM")
    if schema.counts == "records":
        output.say(NO_SUBJECT, style="yellow")
    calm_collector()
    try:
        with told(board.status, log_format, summaries=slot is None):
            worker.run()
    except PrivacyViolation:
        if status is not None:
            status.await_reading(_LAST_LOOK)
        raise
    if status is not None:
        board.end()
        status.close()
    if (broken := watch.ended()) is not None:
        raise TooMuchLost(broken)
    if received and received[0] == signal.SIGINT:
        raise typer.Exit(130)


def _outlive_nobody(stop: Callable[[], None]) -> None:
    """Stop when the parent process is gone: only it holds the other end of the input."""
    while os.read(0, 1):
        pass
    stop()
