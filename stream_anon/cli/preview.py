"""`stream-anon preview`: what a policy would make of a table, before anything runs; publishes nothing.

Shows some records before and after, on the terminal of those who have them anyway: nowhere else are values shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from stream_anon.cli import output
from stream_anon.cli.anonymize import bars
from stream_anon.cli.options import Encoding
from stream_anon.cli.prepare import prepare
from stream_anon.cli.provenance import provenance
from stream_anon.cli.ready import make_ready
from stream_anon.cli.results import as_data, lines_of, result_of
from stream_anon.core.decode import Rejection
from stream_anon.core.schema import Schema
from stream_anon.formats.tables import Part, format_of, read_parts
from stream_anon.formats.writers import keep_apart, new_file, refuse_to_overwrite
from stream_anon.insight.advice import gains, limits
from stream_anon.insight.before_after import Pair, pairs, typical
from stream_anon.insight.compare import Comparison
from stream_anon.insight.distributions import distributions
from stream_anon.insight.sample import letters
from stream_anon.local.trial import encode_all, try_stream
from stream_anon.observe.tally import Tally
from stream_anon.report import Result, page_of, render
from stream_anon.report.result import HIGH_LOSS, MUCH_SUPPRESSED, distribution_charts


def preview(
    data: Annotated[Path, typer.Argument(help="The table: .csv, .tsv, .jsonl, .json or .parquet.", show_default=False)],
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    rows: Annotated[int, typer.Option("--rows", min=0, max=100, help="Records to show before and after.")] = 3,
    rate: Annotated[float, typer.Option("--rate", min=1e-6, help="Records a second, on a simulated clock.")] = 1000,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Read at most about this many rows.")] = 100_000,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page about the result.")] = None,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """See what a policy costs before it runs: records before and after, loss, group sizes, risk, delay.

    The stream's own algorithm runs on a simulated clock, at the rate you give. The records that are shown are from your
    data and stay on this terminal; a page (--html) has figures only.

    [bold]Examples[/bold]

        stream-anon preview patients.csv -p policy.yaml --rate 200

        stream-anon preview patients.csv -p policy.yaml --html preview.html
    """
    loaded, schema = prepare(policy)
    comparison = Comparison(loaded, rate)
    format_of(data)
    if html is not None:
        keep_apart([data, policy], [html])
        refuse_to_overwrite(html, force)
    read = Tally([], schema.requirements.k, schema.counts)
    rejected: list[Rejection] = []
    with bars(quiet=as_json) as bar:
        same = comparison.schema()
        parts = up_to(limit, read_parts(data, encoding=encoding))
        comparison.rows = encode_all(parts, same, read, rejected.extend, bar("reading"))
        make_ready(same, quiet=as_json)
        trial = try_stream(same, comparison.rows, rate, bar("simulating"))
    trial.tally.consumed, trial.tally.rejected = read.consumed, read.rejected
    result = result_of(trial.tally, trial.groups, trial.bound)
    shown = pairs(typical(trial.groups), read_parts(data, encoding=encoding), rows) if rows and trial.groups else []
    step = _next_step(result, comparison, data, policy, encoding)
    if html is not None:
        lead = f"Policy {schema.policy.name} on {data.name}, {rate:g} records a second on a simulated clock."
        with new_file(html, force) as raw:
            page = page_of(result, f"Preview of {schema.policy.name}", lead, foot=f"Next: {step}")
            about = provenance(schema, [("input", data), ("policy file", policy)])
            shapes = distribution_charts((d.name, d.before, d.after, d.moved) for d in distributions(trial.groups))
            raw.write(render(replace(page, parts=(*page.parts, *shapes, *about))).encode())
    if as_json:
        records = [{"before": pair.before, "after": pair.after} for pair in shown]
        shown_of = {"rate": rate, "rows": records, "rejections": letters(rejected), "next": step}
        output.print_json(as_data(result) | shown_of)
        return
    console = output.talk()
    if shown:
        console.print(Text("Some records of one typical group; they are yours and shown here only.", style="dim"))
        console.print(_before_and_after(shown, schema))
    for line in lines_of(result):
        console.print(line)
    if trial.bound is not None and read.consumed / rate <= trial.bound:
        console.print("all records arrived within one bound, so the end of the table cut their delay short")
    if html is not None:
        console.print(f"wrote {html}")
    console.print(Text(f"next: {step}", style="bold green"))


def unheard(rejections: Sequence[Rejection]) -> None:
    """Ignore rejected rows: they are counted, and `check --data` shows which and why."""


def up_to(limit: int, parts: Iterator[Part]) -> Iterator[Part]:
    """Yield the parts that begin within the first `limit` rows."""
    return takewhile(lambda part: part.first <= limit, parts)


def _before_and_after(shown: Sequence[Pair], schema: Schema) -> Table:
    """Build a table with a line per field: its value in each record, and what all of them become."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for heading in ("field", *(f"record {i + 1}" for i in range(len(shown))), "published as"):
        table.add_column(heading, overflow="ellipsis", no_wrap=True, max_width=28)
    roles = {name: attribute.role for name, attribute in schema.policy.attributes.items()}
    names = dict.fromkeys([*roles, *(name for pair in shown for name in pair.before)])
    for name in names:
        role = roles.get(name)
        before = [_word(pair.before.get(name)) for pair in shown]
        if role == "quasi_identifier":
            after = Text(_word(shown[0].after.get(name)), style="bold cyan")
        elif name in schema.published:
            published = [_word(pair.after.get(name)) for pair in shown]
            after = Text("unchanged" if published == before else ", ".join(published))
        else:
            after = Text("(not published)" if role else "(dropped)", style="dim")
        table.add_row(Text(name, style="bold" if role == "quasi_identifier" else ""), *before, after)
    return table


def _word(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return f"[{', '.join(map(_word, value))}]"
    return "".join(c if c.isprintable() else "·" for c in str(value))


def _next_step(result: Result, comparison: Comparison, data: Path, policy: Path, encoding: str | None) -> str:
    """Return the one suggestion that would help most, with what it would gain on these rows."""
    table, judged = output.table(data, encoding), output.quoted(policy)
    if result.rejected:
        return f"find out why {result.rejected:,} rows were rejected: {output.check_of(policy, data, encoding)}"
    dropped = not result.published or result.suppressed / max(result.records, 1) > MUCH_SUPPRESSED
    if dropped or result.loss > HIGH_LOSS:
        what = "too much is suppressed" if dropped else "the loss is high"
        losses = dict(result.losses)
        tried = gains(comparison, losses)
        found = [each for each in tried if each.worth][:2]
        told = "; ".join(map(str, found or tried))
        if not found:
            nothing = f"nothing that was tried helps ({told}); " if told else ""
            told = nothing + limits(comparison, losses)
        return f"{what}: {told} — see more: stream-anon compare {table} -p {judged}"
    if data.suffix.lower() in (".csv", ".tsv"):
        return f"stream-anon pipe -p {judged} --csv < {table} > anonymous.jsonl"
    if data.suffix.lower() in (".jsonl", ".ndjson"):
        return f"stream-anon pipe -p {judged} < {table} > anonymous.jsonl"
    return f"stream-anon anonymize {table} -p {judged} -o anonymous.jsonl"
