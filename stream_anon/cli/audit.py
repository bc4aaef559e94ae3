"""`stream-anon audit`: verify from the published records alone that the promise was kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer
from rich.text import Text

from stream_anon.auditor.auditor import Auditor, audit_chunks, audit_file
from stream_anon.auditor.findings import Findings
from stream_anon.auditor.policy import Rules, read_rules
from stream_anon.auditor.raw.original import Original, read_original
from stream_anon.auditor.result import AuditResult
from stream_anon.cli import output
from stream_anon.cli.audit_page import page
from stream_anon.cli.audit_progress import Count, bar_over
from stream_anon.cli.interrupt import interruptible
from stream_anon.cli.kafka_setup import need_kafka_python
from stream_anon.cli.options import Encoding
from stream_anon.cli.provenance import provenance
from stream_anon.formats.writers import keep_apart, new_file, refuse_to_overwrite
from stream_anon.report import render

FAILED = 4
TOPIC = "kafka:"

_REMEDY = "name the column that identifies people in the policy (subject: ...) to count them"


class Isolation(StrEnum):
    """The isolation level with which the audit reads a topic."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


def audit(
    out: Annotated[
        str, typer.Argument(help="What was published: .jsonl, .csv, .parquet, or kafka:TOPIC.", show_default=False)
    ],
    policy: Annotated[Path | None, typer.Option("--policy", "-p", help="The policy it was published under.")] = None,
    raw: Annotated[
        str | None, typer.Option("--raw", help="The original records: a file, or kafka:TOPIC. Kept in memory.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Audit a topic as it grows, until Ctrl-C or SIGTERM.")
    ] = False,
    idle: Annotated[
        float | None, typer.Option("--idle", min=0.1, help="End --follow after this many seconds without a record.")
    ] = None,
    bootstrap: Annotated[
        str | None, typer.Option("--bootstrap", help="The broker of a topic, if the policy does not name it.")
    ] = None,
    isolation: Annotated[
        Isolation, typer.Option("--isolation", help="read_uncommitted: as most clients see the topic.")
    ] = Isolation.COMMITTED,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page about the result.")] = None,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Prove from the published records alone that the promise was kept. Ends with 4 if it was not.

    The auditor shares no code with what made the records. Without a policy it judges what the records say of
    themselves; with the raw records it also counts people and finds rows that were invented, moved or doubled.

    [bold]Examples[/bold]

        stream-anon audit out.jsonl -p policy.yaml

        stream-anon audit out.csv -p policy.yaml --raw patients.csv --html audit.html

        stream-anon audit kafka:anonymous -p policy.yaml --follow --isolation read_uncommitted
    """
    rules = read_rules(policy) if policy else None
    if raw is not None and rules is None:
        raise typer.BadParameter("raw records need a policy: pass -p", param_hint="--raw")
    if follow and not out.startswith(TOPIC):
        raise typer.BadParameter("only a topic can be followed: kafka:TOPIC", param_hint="--follow")
    if html is not None:
        keep_apart([policy, *(Path(name) for name in (out, raw or out) if not name.startswith(TOPIC))], [html])
        refuse_to_overwrite(html, force)
    stopped = None
    if not out.startswith(TOPIC):
        original = _raw(raw, rules, bootstrap, encoding)
        with bar_over(Path(out), quiet=as_json) as heard:
            result = audit_file(Path(out), rules, original, heard)
    else:
        result, stopped = _topic(out, rules, _raw(raw, rules, bootstrap, encoding), follow, idle, bootstrap, isolation)
    step = next_step(result, policy, raw, encoding)
    if html is not None:
        with new_file(html, force) as file:
            made = page(result, step)
            named = [("published", out), ("raw", raw or ""), ("policy file", str(policy or ""))]
            files = [(word, Path(name)) for word, name in named if name and not name.startswith(TOPIC)]
            file.write(render(replace(made, parts=(*made.parts, *provenance(None, files)))).encode())
    if as_json:
        output.print_json(result.as_data())
    else:
        for line, style in lines(result):
            output.say(line, style)
        if html is not None:
            output.say(f"wrote {html}")
        output.say(step)
    if not result.passed:
        raise typer.Exit(FAILED)
    if stopped is not None:
        stopped.leave()


def _raw(given: str | None, rules: Rules | None, bootstrap: str | None, encoding: str | None) -> Original | None:
    if given is None or rules is None:
        return None
    if not given.startswith(TOPIC):
        return read_original(Path(given), rules, encoding)
    need_kafka_python()
    from stream_anon.auditor.reading.topics import read_raw_topic

    topic = _open(given, rules, bootstrap, Isolation.COMMITTED, published=False)
    try:
        return read_raw_topic(topic, rules)
    finally:
        topic.close()


def _open(given: str, rules: Rules | None, bootstrap: str | None, isolation: Isolation, published: bool = True) -> Any:
    """Open a topic by its name, or the policy's for a bare `kafka:`; the broker and its options are the policy's."""
    from stream_anon.auditor.reading.topics import Topic
    from stream_anon.kafka.clients.kafka_python.options import client_options

    kafka = rules.kafka if rules else None
    usual = (kafka.output if published else kafka.input) if kafka else ""
    name, address = given.removeprefix(TOPIC) or usual, bootstrap or (kafka.bootstrap if kafka else "")
    if not name or not address:
        raise typer.BadParameter(
            "nobody says where the topic is: pass --bootstrap HOST:PORT, or -p POLICY with a kafka: part",
            param_hint="--bootstrap",
        )
    options = client_options(kafka.options)["consumer"] if kafka else {}
    return Topic(address, name, options, isolation.value)


def _topic(
    given: str,
    rules: Rules | None,
    original: Original | None,
    follow: bool,
    idle: float | None,
    bootstrap: str | None,
    isolation: Isolation,
) -> tuple[AuditResult, Any]:
    """Audit a topic and return the result, and what ended it if it was followed."""
    need_kafka_python()
    from stream_anon.auditor.reading.topics import TopicReader

    findings, asked = Findings(), Event()
    reader, repeats = TopicReader(rules, findings), isolation is Isolation.UNCOMMITTED
    topic = _open(given, rules, bootstrap, isolation)
    try:
        auditor = Auditor(rules, findings, original, live=follow, repeats=repeats)
        if not follow:
            chunks = map(reader.chunk, topic.to_the_end())
            return audit_chunks(chunks, auditor, given), None
        reported: set[str] = set()
        console = output.talk()
        with interruptible(asked.set) as interrupt, Count(console) as count:
            for messages in topic.follow(asked.is_set, idle):
                auditor.add(reader.chunk(messages))
                for finding in findings.all():
                    if finding.code not in reported:
                        console.print(Text(f"FAIL  {finding}", style="bold red"))
                        reported.add(finding.code)
                count.add(len(messages), len(reported))
        return auditor.result(given), interrupt
    finally:
        topic.close()


def lines(result: AuditResult) -> Iterator[tuple[str, str]]:
    """Yield the result in words, each line with its style."""
    if result.k_counts == "records":
        yield f"{result.verdict}; {_REMEDY}", "yellow" if result.passed else "bold red"
    classes = f", {result.classes:,} different" if result.policy else ""
    yield f"{result.records:,} records in {result.groups:,} groups{classes}", ""
    if result.groups:
        need = f", required {result.required:,}" if result.required else ""
        people = "" if result.fewest_people is None else f"{result.fewest_people:,} people, "
        yield f"smallest group: {people}{result.fewest_rows:,} records{need}", ""
    for name, worst in result.sensitive.items():
        far = "" if worst.distance is None else f", distance {worst.distance:.3f}"
        worth = f"at least {worst.distinct} values, worth {worst.effective:.2f}; largest share {worst.share:.2f}"
        yield f"{name}: {worth}{far}", ""
    for name, links in result.linkage.items():
        yield (
            f"{name}: {links.tokens:,} tokens; one links {links.largest:,} groups at most, {links.mean:.2f} on average",
            "",
        )
    if result.loss is not None:
        yield f"information lost: {result.loss:.4f} of what is published", ""
    if result.raw is not None:
        yield (
            f"raw: {result.raw.raw_rows:,} rows; {result.raw.matched:,} of {result.records:,} records are each made of "
            f"one of them; {result.raw.determined:,} groups certain",
            "",
        )
        if result.raw.longest_delay is not None:
            yield f"longest delay: at least {result.raw.longest_delay:.3f} s", ""
    if result.repeated or result.open:
        yield f"{result.repeated:,} records seen again, {result.open:,} waiting for the rest of their group", ""
    if result.undecided:
        yield f"{result.undecided:,} groups have more records than people: judged in their favour", "yellow"
    for note in result.notes:
        yield note, "yellow"
    for finding in result.findings:
        yield f"FAIL  {finding}", "bold red"
    style = "bold red" if not result.passed else "bold green" if result.k_counts == "people" else "bold yellow"
    yield result.verdict if result.k_counts == "records" or not result.passed else "passed: nothing was found", style


def next_step(result: AuditResult, policy: Path | None, raw: str | None, encoding: str | None = None) -> str:
    """Return the suggestion of what to do next."""
    if not result.passed:
        return "next: withdraw what was published, and look the findings up in docs/audit.md"
    if policy is None:
        return "next: pass -p POLICY to judge the groups by their policy"
    if raw is None:
        counted = "count people and " if result.k_counts == "people" else ""
        return f"next: pass --raw ORIGINAL to {counted}match rows"
    if result.source.startswith(TOPIC) or raw.startswith(TOPIC):
        return "next: everything was checked; --follow keeps watching"
    table = output.table(raw, encoding)
    return f"next: stream-anon attack {output.quoted(result.source)} --raw {table} -p {output.quoted(policy)}"
