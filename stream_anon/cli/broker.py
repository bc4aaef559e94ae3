"""`stream-anon broker`: run a real Kafka on this machine in the foreground, for trials without Docker or Java."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from stream_anon.cli import output
from stream_anon.cli.kafka_setup import compacted_of, need_broker, need_clients, prepare_for_kafka, topics_of


def broker(
    policy: Annotated[
        Path | None, typer.Option("--policy", "-p", help="Create the topics this policy names.", show_default=False)
    ] = None,
    port: Annotated[int, typer.Option(help="The port on the loopback.")] = 9092,
    folder: Annotated[
        Path | None, typer.Option(help="Keep the data in this folder; without it they are deleted at the end.")
    ] = None,
    registry: Annotated[
        bool, typer.Option("--registry", help="Run a schema registry beside it; the first start downloads it (159 MB).")
    ] = False,
    registry_port: Annotated[int, typer.Option(help="The port of the registry on the loopback.")] = 8081,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of the input topic.")] = 4,
) -> None:
    """Run Apache Kafka locally until Ctrl-C. The first start downloads it (43 MB).

    [bold]Examples[/bold]

        stream-anon broker -p policy.yaml

        stream-anon broker --port 19092 --folder kafka-data

        stream-anon broker -p policy.yaml --registry
    """
    need_broker()
    need_clients()
    from stream_anon.kafka.clients import client_of
    from stream_anon.kafka.local_broker.broker import LocalBroker
    from stream_anon.kafka.local_broker.registry import LocalRegistry
    from stream_anon.worker.factory import kafka_of

    topics: dict[str, int] = {}
    compacted: list[str] = []
    client = client_of()
    if policy is not None:
        kafka = kafka_of(prepare_for_kafka(policy)[0].policy)
        client, topics, compacted = client_of(kafka.client), topics_of(kafka, partitions), compacted_of(kafka)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    output.say("starting Apache Kafka ...")
    local = LocalBroker(folder, port=port)
    schemas = LocalRegistry(registry_port) if registry else None
    try:
        local.start()
        if schemas is not None:
            output.say("starting the schema registry ...")
            output.say(f"the schema registry answers at {schemas.start().url}")
        created = client.create_topics(local.bootstrap, topics, compacted=compacted)
        output.say(f"Kafka listens on {local.bootstrap}" + (f"; created {', '.join(created)}" if created else ""))
        output.say(f"next: stream-anon run -p {output.quoted(policy) if policy else 'POLICY'} — end with Ctrl-C")
        ended.wait()
    finally:
        if schemas is not None:
            schemas.remove()
        local.remove()
