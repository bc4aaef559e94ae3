"""`stream-anon attack`: what the known attacks achieve on the raw records, and on what was published of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from stream_anon.audit.attacks import AttackResult, attack_file
from stream_anon.audit.original import read_original
from stream_anon.audit.policy import read_rules
from stream_anon.cli import output


def attack(
    out: Annotated[Path, typer.Argument(help="What was published: .jsonl, .csv or .parquet.", show_default=False)],
    raw: Annotated[Path, typer.Option("--raw", help="The original records: a file.", show_default=False)],
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    listed: Annotated[
        Path | None,
        typer.Option("--list", help="People by name, with their quasi-identifiers; the raw records' own if not given."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The column of the list that names a person.")] = "name",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Try the known attacks on the raw records and on the published ones: on which share of records each succeeds.

    Linking with a list of people, homogeneity, skew, similarity, background knowledge, guarding nodes, and following a
    person through their groups. Somebody's success is measured with the raw records, which an attacker does not have.

    [bold]Examples[/bold]

        stream-anon attack out.jsonl --raw patients.csv -p policy.yaml

        stream-anon attack out.csv --raw patients.csv -p policy.yaml --list voters.csv --name name --json
    """
    rules = read_rules(policy)
    people = read_original(listed, replace(rules, subject=name)) if listed else None
    result = attack_file(out, rules, read_original(raw, rules), people)
    if as_json:
        output.print_json(result.as_data())
        return
    _show(result, policy)


def _show(result: AttackResult, policy: Path) -> None:
    table = Table(box=None, pad_edge=False)
    for title, justify in (("attack", "left"), ("raw", "right"), ("published", "right"), ("succeeds where", "left")):
        table.add_column(title, justify=justify, no_wrap=title != "succeeds where")  # type: ignore[arg-type]
    for found in result.attacks:
        title = f"{found.name} ({found.attribute})" if found.attribute else found.name
        table.add_row(title, f"{found.before:.1%}", f"{found.after:.1%}", found.meaning)
    output.talk().print(table)
    raw, published = result.highest_chance
    best = f"{raw:.3f} raw, {published:.3f} published; 1/k is {1 / result.k:.3f}"
    what = "name the person of" if result.k_counts == "people" else "recognise"
    output.say(f"best chance to {what} a record: {best}")
    output.say(f"shares of {result.raw_rows:,} raw and {result.records:,} published records")
    for note in result.notes:
        output.say(note, style="yellow")
    if any(found.after > 0 for found in result.attacks):
        output.say(f"next: ask for more in {policy} (docs/audit.md names the model against each attack)")
    else:
        output.say("next: none of these succeeds; others may: docs/audit.md")
