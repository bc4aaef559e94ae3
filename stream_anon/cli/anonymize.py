"""`stream-anon anonymize`: a file through a batch algorithm into another file, whole or not at all."""

from __future__ import annotations

import re
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from stream_anon.batch import ALGORITHMS
from stream_anon.batch.cut_tree import spread
from stream_anon.cli import output
from stream_anon.cli.options import Encoding, MaxRejected, MaxSuppressed, QuoteFormulas
from stream_anon.cli.parts import Asked, anonymize_in_parts, cpu_seconds, measured_since
from stream_anon.cli.pipe import DeadLetters, opened
from stream_anon.cli.prepare import prepare
from stream_anon.cli.provenance import provenance
from stream_anon.cli.ready import make_batch_ready
from stream_anon.cli.results import (
    audit_of,
    classes_told,
    lines_in_words,
    raised_in_words,
    result_of,
    result_told,
    whole,
)
from stream_anon.cli.spark import SparkRun, anonymize_by_spark
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.tables import format_of, read_parts
from stream_anon.formats.writers import (
    keep_apart,
    new_file,
    refuse_to_overwrite,
    refuse_what_cannot_be_written,
    writer_for,
)
from stream_anon.local.anonymize import Anonymization
from stream_anon.observe.limits import Limits
from stream_anon.policy import LoadedPolicy
from stream_anon.report import Result, page_of, render
from stream_anon.report.measures import measure_tables
from stream_anon.report.parts import Tile
from stream_anon.report.result import NO_SUBJECT

LONG = 10.0
"""Seconds of quadratic work above which somebody has to agree."""


class NotAgreed(StreamAnonError):
    """The user did not agree to work that takes long."""

    exit_code = 2


def anonymize(
    data: Annotated[Path, typer.Argument(help="The table: .csv, .tsv, .jsonl, .json or .parquet.", show_default=False)],
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    out: Annotated[
        Path,
        typer.Option("--output", "-o", help="The file to write: .csv, .tsv, .jsonl or .parquet.", show_default=False),
    ],
    algorithm: Annotated[str, typer.Option("--algorithm", "-a", help=f"One of: {', '.join(ALGORITHMS)}.")] = "sweep",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the algorithm: --set order=[sex,age]. Repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same groups.")] = 0,
    dead_letters: Annotated[
        Path | None,
        typer.Option("--dead-letters", help="Append the place and the code of each rejected row to this file."),
    ] = None,
    quote_formulas: QuoteFormulas = True,
    max_rejected: MaxRejected = None,
    max_suppressed: MaxSuppressed = None,
    parts: Annotated[
        str | None,
        typer.Option("--parts", help="Cut a large table into parts: auto, or how many. Memory is that of a part."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Parts worked on at once, each by a process.")] = 1,
    spill: Annotated[
        Path | None,
        typer.Option("--spill", help="Keep parts in this private folder, so that a run that failed can be continued."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="local, or spark: paths are Spark's, OUT is a folder.")
    ] = "local",
    master: Annotated[
        str | None, typer.Option("--master", help="Where Spark runs: local[2], spark://HOST:PORT.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--html", "--report", help="Write a page about the result.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start work that takes long without asking.")] = False,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Anonymize a whole table by a batch algorithm.

    Every row leaves in a group that satisfies the policy, or not at all. The output appears when it is complete; its
    rows are in an order that reveals nothing of the input's.

    [bold]Examples[/bold]

        stream-anon anonymize patients.csv -p policy.yaml -o anonymous.csv

        stream-anon anonymize patients.csv -p policy.yaml -o out.jsonl --algorithm mondrian --set order=[sex,age]
    """
    loaded, schema = prepare(policy)
    if engine not in ("local", "spark"):
        raise typer.BadParameter("local or spark", param_hint="--engine")
    told = classes_told if report is not None else None
    begin, cpu = time.monotonic(), cpu_seconds()
    if engine == "spark":
        given_here = {"--dead-letters": dead_letters, "--encoding": encoding, "--spill": spill}
        for option, given in given_here.items():
            if given is not None:
                raise typer.BadParameter("only --engine local has it: leave it out", param_hint=option)
        if report is not None:
            refuse_to_overwrite(report, force)
        limits, options = Limits.of(schema.policy, max_rejected, max_suppressed), options_of(settings or [])
        source, target = _address(data), _address(out)
        asked_spark = SparkRun(source, target, master, algorithm, options, seed, parts, force, limits, told)
        tally, classes, found = anonymize_by_spark(asked_spark, loaded.policy)
        if report is not None:
            made = _Made(schema, algorithm, source, [("policy file", policy)])
            _write_page(report, force, made, result_told(tally, classes), found, [])
        _tell(found | {"seconds": round(time.monotonic() - begin, 2)}, data, out, loaded, encoding, as_json, report)
        return
    format_of(data)
    refuse_what_cannot_be_written(out)
    keep_apart([data, policy], [out, report, dead_letters])
    for path in (out, *([report] if report else [])):
        refuse_to_overwrite(path, force)
    limits = Limits.of(schema.policy, max_rejected, max_suppressed)
    options = options_of(settings or [])
    files = [("input", data), ("output", out), ("policy file", policy)]
    made = _Made(schema, algorithm, data.name, files)
    if parts is not None:
        asked = Asked(parts, workers, spill, algorithm, options, seed, quote_formulas, limits, encoding, told)
        with bars(quiet=as_json) as bar, opened(dead_letters) as file:
            parted = anonymize_in_parts(data, out, schema, asked, file, bar, force)
        found = parted.summary() | measured_since(begin, cpu) | {"peak_mb": peak_mb()}
        if report is not None:
            _write_page(report, force, made, result_told(parted.tally, parted.told), found, [_work(found)])
        _tell(found, data, out, loaded, encoding, as_json, report)
        return
    run = Anonymization(schema, algorithm, options, seed, limits)
    with bars(quiet=as_json) as bar:
        with opened(dead_letters) as file:
            run.read(read_parts(data, encoding=encoding), DeadLetters(file, as_json), bar("reading"))
        agree(run, yes, bar.progress)
        make_batch_ready(run)
        bar.total = len(run.rows or ())
        run.divide(bar(f"grouping ({algorithm})"))
        with new_file(out, force) as raw:
            run.write(writer_for(out, raw, quote_formulas), bar("writing"))
    found = run.summary() | measured_since(begin, cpu) | {"peak_mb": peak_mb()}
    if report is not None:
        _write_page(report, force, made, result_of(run.tally, run.groups), found, [_work(found)])
    _tell(found, data, out, loaded, encoding, as_json, report)


def _address(path: Path) -> str:
    """Return a path as it was written: an address such as s3a://bucket/table lost a slash when it became a path."""
    return re.sub(r"^([a-z][a-z0-9+.-]+:)/(?!/)", r"\1//", str(path))


def _tell(
    found: dict[str, Any],
    data: Path,
    out: Path,
    loaded: LoadedPolicy,
    encoding: str | None,
    as_json: bool,
    report: Path | None,
) -> None:
    """Print the result of a run."""
    if as_json:
        output.print_json(found | {"output": str(out)})
        return
    if report is not None:
        output.say(f"wrote {report}")
    for line in _lines(found, data, out, loaded.source.file, encoding):
        output.say(line)
    if ALGORITHMS[found["algorithm"]].support.by_value:
        told = f"{found['algorithm']} chooses rows by their sensitive values, which can be read out of groups"
        output.say(told, style="yellow")


@dataclass(frozen=True)
class _Made:
    """How a table was made, for its page."""

    schema: Schema
    algorithm: str
    source: str
    files: list[tuple[str, Path]]


def _write_page(
    report: Path, force: bool, made: _Made, result: Result, found: dict[str, Any], tiles: list[Tile]
) -> None:
    """Write a page about a table from what is known of it: none of its rows is needed."""
    name = made.schema.policy.name
    lead = f"{made.source} under the policy {name}, by the batch algorithm {made.algorithm}."
    page = page_of(result, f"Result of {name}", lead, tiles)
    parts = (*page.parts, *measure_tables(found["measures"]), *provenance(made.schema, made.files))
    with new_file(report, force) as raw:
        raw.write(render(replace(page, parts=parts)).encode())


def _work(found: dict[str, Any]) -> Tile:
    return Tile("Work", f"{found['cpu_seconds']:.3g} s", f"of processor time, {found['peak_mb']:,.0f} MB")


def options_of(settings: list[str]) -> dict[str, Any]:
    """Parse options written `key=value`, the value in YAML."""
    found: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f'"{key}": an option is written key=value', param_hint="--set")
        try:
            found[key.strip()] = YAML(typ="safe", pure=True).load(value)
        except YAMLError:
            raise typer.BadParameter(f"{key}: its value is not valid YAML", param_hint="--set") from None
    return found


def agree(run: Anonymization, yes: bool, progress: Progress) -> None:
    """Print how long quadratic work will take; above `LONG` seconds the user has to agree."""
    if not run.seconds:
        return
    rows = len(run.rows or ())
    output.say(f"{run.algorithm} compares all pairs of {rows:,} rows: about {run.seconds:,.0f} CPU seconds")
    if run.seconds < LONG or yes:
        return
    if not sys.stdin.isatty():
        raise NotAgreed(f"{run.algorithm} would take about {run.seconds:,.0f} CPU seconds; pass --yes, or use sweep")
    progress.stop()
    if not typer.confirm("go on?", err=True):
        raise NotAgreed("nothing was written")
    progress.start()


class _Rate(ProgressColumn):
    """A progress column that shows rows per second."""

    def render(self, task: Task) -> Text:
        """Return the rate as text, once it is known."""
        rows = task.fields.get("rows") or 0
        speed = (task.speed or 0.0) * rows
        return Text(f"{speed:,.0f} rows/s" if speed else "")


class Bars:
    """A progress display with one bar per step."""

    def __init__(self, progress: Progress, quiet: bool) -> None:
        self.progress, self.quiet = progress, quiet
        self.total = 0

    def __call__(self, step: str) -> Any:
        """Add a bar for a step and return a function that takes the share done."""
        task = self.progress.add_task(step, total=1.0, rows=self.total)
        return lambda share: self.progress.update(task, completed=share)


@contextmanager
def bars(quiet: bool) -> Iterator[Bars]:
    """Show bars with rate and time left on stderr, if that is a terminal."""
    console = output.talk()
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), _Rate(), TimeRemainingColumn(),
        console=console, disable=quiet or not console.is_terminal, transient=True,
    )  # fmt: skip
    with progress:
        yield Bars(progress, quiet)


def peak_mb() -> float:
    """Return the peak memory of the largest process in megabytes; Linux counts in KiB, macOS in bytes."""
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def _lines(found: dict[str, Any], data: Path, out: Path, policy: str, encoding: str | None) -> Iterator[str]:
    rejected = sum(found["rejected"].values())
    codes = ", ".join(f"{count:,} {code}" for code, count in sorted(found["rejected"].items()))
    yield (
        f"{found['rows']:,} rows in: {found['published']:,} published in {found['classes']:,} classes, "
        f"{found['suppressed']:,} suppressed, {rejected:,} rejected" + (f" ({codes})" if codes else "")
    )
    if lines := lines_in_words(found.get("lines")):
        yield lines
    if found["published"]:
        losses = ", ".join(f"{name} {loss:.3f}" for name, loss in found["loss_per_attribute"].items())
        yield f"information lost: {found['loss']:.4f}{whole(found['suppressed'])} ({losses})"
        who = found["k_counts"]
        yield f"smallest class: {found[f'smallest_group_{who}']:,} {who}, required {found[f'required_{who}']:,}"
        if who == "records":
            yield NO_SUBJECT
    yield from raised_in_words(found)
    if found.get("parts"):
        yield spread(found["parts"])
    work = f" ({found['cpu_seconds']:.1f} s CPU), {found['peak_mb']:,.0f} MB" if "peak_mb" in found else ""
    yield f"{found['seconds']:.1f} s{work}"
    if rejected:
        yield f"next: find out why rows were rejected: {output.check_of(policy, data, encoding)}"
    else:
        yield f"next: {audit_of(out, policy, data, encoding)}"
