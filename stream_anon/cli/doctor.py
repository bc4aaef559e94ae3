"""`stream-anon doctor`: check that the broker, the topics and the group are fit for `run`; changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stream_anon.cli import output
from stream_anon.cli.kafka_setup import prepare_for_kafka, warn_of_exposure

if TYPE_CHECKING:
    from stream_anon.kafka.doctor import Finding


def doctor(
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON on stdout.")] = False,
) -> None:
    """Ask the broker everything a worker depends on: one line each, with the remedy where something is wrong.

    [bold]Example[/bold]

        stream-anon doctor -p policy.yaml
    """
    loaded, schema = prepare_for_kafka(policy)
    warn_of_exposure(loaded)
    from stream_anon.kafka.clients import client_of
    from stream_anon.kafka.doctor import Doctor, Finding
    from stream_anon.kafka.reachable import why_not
    from stream_anon.worker.checkup import claim_finding, ledger_findings, schema_findings
    from stream_anon.worker.factory import kafka_of

    kafka = kafka_of(loaded.policy)
    broker = client_of(kafka.client).probe(kafka.bootstrap, kafka.group, kafka.options)
    found: list[Finding] = []

    def take(findings: Iterable[Finding]) -> None:
        """Print each finding as it comes: some have to wait for transactions that may be open."""
        for finding in findings:
            found.append(finding)
            if not as_json:
                _say(finding)

    if (why := why_not(kafka.bootstrap, kafka.options)) is not None:
        take([Finding("broker", False, why, "then ask again")])
    else:
        take(Doctor(broker, kafka.group, kafka.input, kafka.output, kafka.dead_letter, kafka.ledger).examine())
    broker.close()
    take(schema_findings(kafka, schema))
    if all(finding.good for finding in found):
        take([claim_finding(kafka, schema)])
        take(ledger_findings(kafka, schema))
    good = all(finding.good for finding in found)
    if as_json:
        output.print_json({"good": good, "findings": [asdict(finding) for finding in found]})
    else:
        again = "next: correct what failed and run doctor again"
        output.say(f"next: stream-anon run -p {output.quoted(policy)}" if good else again)
    if not good:
        raise typer.Exit(1)


def _say(finding: Finding) -> None:
    mark, style = ("ok  ", "green") if finding.good else ("FAIL", "bold red")
    remedy = "" if finding.good or not finding.remedy else f" — {finding.remedy}"
    output.say(f"{mark}  {finding.question}: {finding.detail}{remedy}", style=style)
