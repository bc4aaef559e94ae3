"""`stream-anon init`: propose a policy for a table or a topic: a reason for each line, and questions to a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from stream_anon.cli import output
from stream_anon.cli.init_topic import Connection, connection_of, kafka_lines, read_topic
from stream_anon.cli.options import Encoding
from stream_anon.cli.prepare import prepare
from stream_anon.cli.replay_ends import topic_in
from stream_anon.core.decode import Rejection
from stream_anon.core.spelling import EVERY_RULE, Spelling, near_equal, spelled_twice
from stream_anon.formats.packing import bare
from stream_anon.formats.tables import TableError, format_of
from stream_anon.formats.writers import keep_apart, new_file, refuse_to_overwrite
from stream_anon.insight.propose import Column, Hint, Proposal, columns_of, judge, policy_name, policy_text, subject_of
from stream_anon.insight.sample import Sample, read_sample, remedy_of

LIMIT = 100_000
"""Rows that are looked at: enough to meet nearly every value, few enough to take some seconds."""

MANY_LOST = 0.05
"""A share of unreadable lines that is no matter of single slips: the file is of another kind than its name says."""

_COLOURS = {"identifier": "red", "quasi_identifier": "cyan", "sensitive": "yellow", "left out": "dim"}


@dataclass(frozen=True)
class _Read:
    """What was read for a proposal: a sample, and what is known of it beside its values."""

    sample: Sample
    name: str
    shown: str
    text: bool = False
    unit: str = "line"
    hints: Mapping[str, Hint] = field(default_factory=dict)
    more: Sequence[str] = ()


def init(
    data: Annotated[
        str,
        typer.Argument(
            help="The table (.csv, .tsv, .jsonl, .json, also packed, .parquet, .avro), or kafka:TOPIC.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--output", "-o", help="The policy to write.")] = Path("policy.yaml"),
    limit: Annotated[int, typer.Option("--limit", min=1, help="Read at most this many rows.")] = LIMIT,
    bootstrap: Annotated[str | None, typer.Option("--bootstrap", help="The broker of a topic.")] = None,
    registry: Annotated[str | None, typer.Option("--registry", help="The schema registry of a topic.")] = None,
    kafka: Annotated[
        Path | None,
        typer.Option("--kafka", help="A file, or a policy, whose kafka: part says how a topic is reached."),
    ] = None,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the proposal as JSON on stdout.")] = False,
) -> None:
    """Propose a policy for a table or a topic: the role, type and hierarchy of every column, each with its reason.

    Names and values of columns are evidence, not proof. Lines marked DECIDE are for a person who knows the data; until
    then the policy errs on the side of privacy, and it is valid as it is written. The same table gives the same policy.
    Of a topic the newest records are read; tags (such as PII) and descriptions in their schemas go before what values
    look like, and the policy gets its kafka: part.

    [bold]Examples[/bold]

        stream-anon init patients.csv

        stream-anon init events.jsonl.gz -o events.yaml --force

        stream-anon init kafka:visits --bootstrap broker:9092 --registry http://registry:8081

        stream-anon init kafka:visits --kafka connection.yaml
    """
    topic = topic_in(data)
    if topic is None and (bootstrap or registry or kafka):
        raise typer.BadParameter("only a topic has a broker and a registry", param_hint="DATA")
    if topic is not None and encoding:
        raise typer.BadParameter("records of a topic are in UTF-8: leave it out", param_hint="--encoding")
    refuse_to_overwrite(out, force)
    read = (
        _read_file(Path(data), out, limit, encoding)
        if topic is None
        else _read_topic(topic, connection_of(topic, bootstrap, registry, kafka), limit)
    )
    sample, rows = read.sample, read.sample.rows
    columns = columns_of(rows, read.text)
    if sample.unread and not rows:
        raise TableError(f"{data}: no {read.unit} of it is a record: {_told(sample.unread, read.unit)}")
    _refuse_what_is_no_table(data, columns, read.text)
    _refuse_names_inside_others(data, [column.name for column in columns])
    proposals = judge(columns, read.hints)
    if not any(proposal.role == "quasi_identifier" for proposal in proposals):
        why = "no column can be generalized, so people cannot be made to look alike"
        raise TableError(f"{data}: {why}: give a table with columns such as age, place or date, and more rows")
    few = len(rows) + len(sample.unread) < limit
    first = "newest" if topic else "first"
    counted = f"{len(rows):,} rows" if few else f"its {first} {limit:,} rows"
    text = policy_text(proposals, policy_name(read.name), read.shown, counted, read.more)
    files = _write(proposals, text, out, force)
    prepare(out)
    asked = sum(bool(proposal.decide) for proposal in proposals)
    left_out = [{"line": bad.index, "code": str(bad.code)} for bad in sample.unread]
    if as_json:
        written = {"policy": str(out), "files": [str(file) for file in files], "left_out": left_out}
        output.print_json(_as_data(proposals) | written)
        return
    console = output.talk()
    console.print(_table(proposals))
    for told_of in filter(None, map(_spelled, proposals)):
        console.print(Text(told_of, style="yellow"))
    if left_out:
        lost = f"{len(left_out):,} {read.unit}s are no records and were left out: {_told(sample.unread, read.unit)}"
        console.print(Text(lost, style="yellow"))
        if len(left_out) > MANY_LOST * (len(rows) + len(left_out)):
            console.print(Text(f"that is a lot: {remedy_of(sample.unread)}", style="yellow"))
    subject = subject_of(proposals)
    console.print(f"k counts {'records' if subject is None else f'different values of {subject.name}'}: see DECIDE")
    console.print(f"wrote {', '.join(map(str, [out, *files]))} from {counted}")
    step = f"read {out}, decide the lines marked DECIDE ({asked} of {len(proposals)} columns), then"
    sampled = "" if topic else f" --data {output.table(data, encoding)}"
    console.print(Text(f"next: {step}: stream-anon check {output.quoted(out)}{sampled}", style="bold green"))


def _read_file(data: Path, out: Path, limit: int, encoding: str | None) -> _Read:
    found = format_of(data)
    keep_apart([data], [out])
    return _Read(read_sample(data, limit, encoding), bare(data).stem, data.name, found.text)


def _read_topic(topic: str, connection: Connection, limit: int) -> _Read:
    sample = read_topic(topic, connection, limit)
    lines = kafka_lines(connection, sample.format)
    return _Read(sample, topic, f"the topic {topic}", unit="record", hints=sample.hints, more=lines)


def _spelled(proposal: Proposal) -> str:
    """Say how many values of a column of words differ from another only in spelling, and what that costs."""
    values, shape = set(proposal.column.counts), proposal.shape
    if proposal.role == "sensitive":
        alike, cost = near_equal(set(map(Spelling(EVERY_RULE).fold, values))), "l counts one value twice"
    elif (
        proposal.role == "quasi_identifier"
        and shape is not None
        and shape.hierarchy.startswith(("{kind: flat", "{kind: csv"))
    ):
        alike, cost = spelled_twice(values), "each is a value of its own, and alike records do not meet"
    else:
        return ""
    differ = "value differs" if alike == 1 else "values differ"
    return (
        f"{proposal.column.name}: {alike:,} {differ} from another only in spelling: spell them alike, or {cost}"
        if alike
        else ""
    )


def _told(unread: list[Rejection], unit: str) -> str:
    """Return the first lines that are no records, with their codes."""
    first = ", ".join(f"{unit} {bad.index} ({bad.code})" for bad in unread[:5])
    return first + (", ..." if len(unread) > 5 else "")


def _refuse_names_inside_others(data: str, names: list[str]) -> None:
    """Raise if a dotted name is a field inside another column: a policy cannot declare both."""
    for name in names:
        outer = next((other for other in names if name.startswith(f"{other}.")), None)
        if outer is not None:
            raise TableError(f'{data}: the column "{name}" would be a field inside "{outer}": rename one of them')


def _refuse_what_is_no_table(data: str, columns: list[Column], text: bool) -> None:
    if not columns:
        raise TableError(f"{data}: has no rows: give a table with a line of names and some rows below it")
    numbers = [column.name for column in columns if column.name.strip().lstrip("-").replace(".", "", 1).isdigit()]
    if text and len(numbers) * 4 >= len(columns):
        raise TableError(
            f"{data}: the first line looks like a record, not like names of columns; put a line with names before it"
        )


def _write(proposals: list[Proposal], text: str, out: Path, force: bool) -> list[Path]:
    """Write the policy, and beside it the tables that its lines name."""
    tables = {
        out.parent / "hierarchies" / p.shape.file: p.shape.table
        for p in proposals
        if p.shape is not None and p.shape.table and p.role == "quasi_identifier"
    }
    for path in tables:
        path.parent.mkdir(exist_ok=True)
        refuse_to_overwrite(path, force)
    for path, table in tables.items():
        with new_file(path, force) as file:
            file.write("".join(";".join(line) + "\n" for line in table).encode())
    with new_file(out, force) as file:
        file.write(text.encode())
    return list(tables)


def _table(proposals: list[Proposal]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in ("column", "proposed", "because", ""):
        table.add_column(heading, overflow="fold")
    for proposal in proposals:
        table.add_row(
            Text(proposal.column.name or "(no name)", style="bold"),
            Text(proposal.role.replace("_", " "), style=_COLOURS[proposal.role]),
            Text(proposal.reason),
            Text("DECIDE" if proposal.decide else "", style="bold yellow"),
        )
    return table


def _as_data(proposals: list[Proposal]) -> dict[str, object]:
    subject = subject_of(proposals)
    return {
        "subject": None if subject is None else subject.name,
        "columns": [
            {"name": p.column.name, "role": p.role, "reason": p.reason, "decide": p.decide or None} for p in proposals
        ],
    }
