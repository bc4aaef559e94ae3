"""`stream-anon attack`: what the known attacks achieve on the raw and on the published records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from stream_anon.auditor.attacks.attacks import AttackResult, attack_file
from stream_anon.auditor.attacks.measured import Measured
from stream_anon.auditor.policy import read_rules
from stream_anon.auditor.raw.original import read_original
from stream_anon.cli import output
from stream_anon.cli.attack_page import page
from stream_anon.cli.options import Encoding
from stream_anon.cli.prepare import prepare
from stream_anon.cli.preview import unheard
from stream_anon.cli.ready import make_ready
from stream_anon.formats.tables import read_parts
from stream_anon.formats.writers import keep_apart, new_file, refuse_to_overwrite
from stream_anon.insight.isolation import Isolation, isolate
from stream_anon.insight.minimality.policy import attack_policy
from stream_anon.local.trial import encode_all
from stream_anon.observe.tally import Tally
from stream_anon.report import render


def attack(
    out: Annotated[Path, typer.Argument(help="What was published: .jsonl, .csv or .parquet.", show_default=False)],
    raw: Annotated[Path, typer.Option("--raw", help="The original records: a file.", show_default=False)],
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    listed: Annotated[
        Path | None,
        typer.Option("--list", help="People by name, with their quasi-identifiers; the raw records' own if not given."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The column of the list that names a person.")] = "name",
    second: Annotated[
        Path | None,
        typer.Option("--second", help="What else was published of the same records: are both safe together?"),
    ] = None,
    second_policy: Annotated[
        Path | None, typer.Option("--second-policy", help="The policy of the second output, if it is another one.")
    ] = None,
    isolation: Annotated[
        int,
        typer.Option(
            "--isolation", min=0, help="Victims to surround by forged records, on a simulated stream; 0: none."
        ),
    ] = 0,
    minimality: Annotated[
        int,
        typer.Option(
            "--minimality",
            min=0,
            help="Groups to replay with their values dealt out otherwise, and to read by other signs; 0: none.",
        ),
    ] = 0,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", help="For --minimality, a batch algorithm; the policy's own on a stream if none."),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=1e-6, help="Records a second of that stream, on a simulated clock.")
    ] = 1000,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page about the result.")] = None,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Try the known attacks on the raw records and on the published ones: on which share of records each succeeds.

    Linking with a list of people, homogeneity, skew, similarity, background knowledge, guarding nodes, and following a
    person through their groups. Then what no group alone reveals: several known groups of one person, values learned
    from all groups (deFinetti), a second output of the same records, forged records around a victim, and values read
    out of who was put together (minimality). Success is measured with the raw records, which an attacker does not have.

    [bold]Examples[/bold]

        stream-anon attack out.jsonl --raw patients.csv -p policy.yaml

        stream-anon attack out.csv --raw patients.csv -p policy.yaml --list voters.csv --name name --json

        stream-anon attack out.jsonl --raw patients.csv -p policy.yaml --second other.jsonl --isolation 200

        stream-anon attack out.csv --raw patients.csv -p policy.yaml --minimality 100 --algorithm sweep
    """
    if html is not None:
        keep_apart([out, raw, policy, listed, second, second_policy], [html])
        refuse_to_overwrite(html, force)
    rules = read_rules(policy)
    people = read_original(listed, replace(rules, subject=name), encoding) if listed else None
    if second_policy is not None and second is None:
        raise typer.BadParameter("there is no second output: pass --second", param_hint="--second-policy")
    original = read_original(raw, rules, encoding)
    other = (second, read_rules(second_policy) if second_policy else rules) if second else None
    result = attack_file(out, rules, original, people, other)
    if isolation:
        result = replace(result, measured=(*result.measured, _isolated(raw, policy, isolation, rate, encoding)))
    if minimality:
        read = _read_out_of_groups(raw, policy, minimality, algorithm, rate, encoding)
        result = replace(result, measured=(*result.measured, *read))
    elif algorithm is not None:
        raise typer.BadParameter("only --minimality runs an algorithm: pass it too", param_hint="--algorithm")
    if html is not None:
        files = [("published", out), ("raw", raw), ("policy file", policy)]
        with new_file(html, force) as file:
            file.write(render(page(result, prepare(policy)[1], files)).encode())
    if as_json:
        output.print_json(result.as_data())
        return
    _show(result, policy)
    if html is not None:
        output.say(f"wrote {html}")


def _isolated(raw: Path, policy: Path, victims: int, rate: float, encoding: str | None) -> Measured:
    """Run the policy's stream algorithm on the raw records with forged ones among them."""
    _, schema = prepare(policy)
    k = schema.requirements.k
    tally = Tally([], k, schema.counts)
    rows = encode_all(read_parts(raw, encoding=encoding), schema, tally, unheard, lambda share: None)
    make_ready(schema, quiet=True)
    found = isolate(schema, rows, victims, rate) if rows is not None and len(rows) else Isolation(0, 0, 0)
    meaning = f"of a victim's group nobody is left when {k - 1} forged {schema.counts} are struck out"
    return Measured("isolation", "", meaning, found.tried, found.share)


def _read_out_of_groups(
    raw: Path, policy: Path, groups: int, algorithm: str | None, rate: float, encoding: str | None
) -> Iterator[Measured]:
    """Run the algorithm on the raw records, and let three attackers read values out of the groups it makes."""
    loaded, schema = prepare(policy)
    tally = Tally([], schema.requirements.k, schema.counts)
    rows = encode_all(read_parts(raw, encoding=encoding), schema, tally, unheard, lambda share: None)
    make_ready(schema, quiet=True)
    for found in attack_policy(loaded, schema, rows, groups, algorithm, rate) if rows is not None else ():
        where = f"{found.sign} (1/k is {1 / schema.requirements.k:.3g}"
        where += f", 1/l is {found.least:.3g})" if found.least else ")"
        name = f"{found.attribute}, {found.attacker} known"
        yield Measured("minimality", name, where, found.claims, found.posterior, found.allowed)


def _show(result: AttackResult, policy: Path) -> None:
    table = Table(box=None, pad_edge=False)
    for title, justify in (("attack", "left"), ("raw", "right"), ("published", "right"), ("succeeds where", "left")):
        table.add_column(title, justify=justify, no_wrap=title != "succeeds where")  # type: ignore[arg-type]
    for found in result.attacks:
        title = f"{found.name} ({found.attribute})" if found.attribute else found.name
        table.add_row(title, f"{found.before:.1%}", f"{found.after:.1%}", found.meaning)
    output.talk().print(table)
    _show_measured(result)
    raw, published = result.highest_chance
    best = f"{raw:.3f} raw, {published:.3f} published; 1/k is {1 / result.k:.3f}"
    what = "name the person of" if result.k_counts == "people" else "recognise"
    output.say(f"best chance to {what} a record: {best}")
    output.say(f"shares of {result.raw_rows:,} raw and {result.records:,} published records")
    for note in result.notes:
        output.say(note, style="yellow")
    if any(found.after > 0 for found in result.attacks):
        output.say(f"next: require more in {policy} (docs/audit.md names the model against each attack)")
    else:
        output.say("next: none of these attacks succeeds; docs/audit.md lists others that may")


def _show_measured(result: AttackResult) -> None:
    """Print the attacks without a before and after, with what guessing achieves."""
    if not result.measured:
        return
    table = Table(box=None, pad_edge=False)
    for title in ("attack", "tried", "succeeds", "a guess", "succeeds where"):
        justify = "left" if title in ("attack", "succeeds where") else "right"
        table.add_column(title, justify=justify, no_wrap=title != "succeeds where")  # type: ignore[arg-type]
    for found in result.measured:
        name = f"{found.name} ({found.attribute})" if found.attribute else found.name
        guess = "" if found.baseline is None else f"{found.baseline:.1%}"
        table.add_row(name, f"{found.tried:,}", f"{found.share:.1%}", guess, found.meaning)
    output.talk().print(table)
