"""`stream-anon topics`: create the topics a policy names where they are missing; leaves existing ones unchanged."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from stream_anon.cli import output
from stream_anon.cli.kafka_setup import compacted_of, prepare_for_kafka, topics_of


def topics(
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of input, output and ledger topic.")] = 4,
    replication: Annotated[int, typer.Option(min=1, help="Copies of each partition; 3 in production.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the topics as JSON on stdout.")] = False,
) -> None:
    """Create the topics of a policy, if they are not there: input, output, dead letters, ledgers.

    Call it as often as you like. The ledger topic is compacted, and has as many partitions as the input.
    Refuses an output that is there and compacted: it would keep one record of each group.

    [bold]Examples[/bold]

        stream-anon topics -p policy.yaml

        stream-anon topics -p policy.yaml --partitions 12 --replication 3
    """
    loaded, _ = prepare_for_kafka(policy)
    from stream_anon.kafka.clients import client_of
    from stream_anon.kafka.reachable import require_broker
    from stream_anon.worker.factory import kafka_of

    kafka = kafka_of(loaded.policy)
    require_broker(kafka.bootstrap, kafka.options)
    client, wanted = client_of(kafka.client), topics_of(kafka, partitions)
    created = client.create_topics(kafka.bootstrap, wanted, kafka.options, replication, compacted_of(kafka))
    broker = client.probe(kafka.bootstrap, kafka.group, kafka.options)
    facts = {topic: broker.facts(topic) for topic in wanted}
    broker.close()
    if as_json:
        output.print_json([{"topic": t, "created": t in created, **asdict(fact)} for t, fact in facts.items()])
    for topic, fact in facts.items():
        done = "created" if topic in created else "there"
        output.say(f"{done:<9}{topic}, {fact.partitions} partition(s), {fact.cleanup_policy}")
    facts[kafka.output].refuse_compaction(kafka.output)
    output.say(f"next: stream-anon run -p {output.quoted(policy)}")
