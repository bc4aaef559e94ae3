"""`stream-anon handover`: give a consumer group whose workers have all ended to another policy or secret."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from stream_anon.cli import output
from stream_anon.cli.kafka_setup import prepare_for_kafka
from stream_anon.errors import StreamAnonError


def handover(
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The new policy file (YAML).", show_default=False)],
    old: Annotated[
        str, typer.Option("--from", help="Fingerprint of the policy the group works by.", show_default=False)
    ],
    old_secret: Annotated[
        str | None,
        typer.Option(help="Environment variable with the secret the group worked with, if it was another."),
    ] = None,
) -> None:
    """Give a consumer group to another policy: what waits is read again under it, nothing is published twice.

    All workers of the group must have ended, and left no group announced (SIGTERM does): the broker refuses it
    otherwise. Workers of the old policy then refuse to start.

    [bold]Examples[/bold]

        stream-anon handover -p policy.yaml --from 9588971a02c3d4e5

        stream-anon handover -p policy.yaml --from visits@958897 --old-secret OLD_SECRET
    """
    loaded, schema = prepare_for_kafka(policy)
    from stream_anon.core.keys import Keys
    from stream_anon.worker.factory import claim_of, core_of, kafka_of, output_claim, transport_of
    from stream_anon.worker.handover import hand_over

    key = None
    if old_secret is not None:
        if not os.environ.get(old_secret):
            raise StreamAnonError(f"the environment variable {old_secret} is not set: put the old secret into it")
        key = Keys(os.environ[old_secret]).ledger
    kafka = kafka_of(loaded.policy)
    transport = transport_of(kafka, "handover")
    try:
        count = hand_over(transport, kafka.input, core_of(schema), old, key, kafka.ledger)
    finally:
        transport.close()
    with output_claim(kafka) as claim:
        holder = claim.holder()
        if holder is not None and holder.group == kafka.group:
            claim.hold(claim_of(kafka, schema, claim.topic_id), instead_of=holder)
    output.say(f"group {kafka.group}: {count} ledger(s) belong to policy {loaded.policy.name} now")
    output.say(f"next: stream-anon run -p {output.quoted(policy)}")
