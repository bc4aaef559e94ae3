"""`stream-anon replay`: a recording through a stream or a batch algorithm; interrupted, it goes on where it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, cast

import typer

from stream_anon.batch import ALGORITHMS
from stream_anon.cli import output
from stream_anon.cli.anonymize import agree, bars, options_of
from stream_anon.cli.pipe import DeadLetters
from stream_anon.cli.prepare import prepare
from stream_anon.cli.ready import make_ready
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.io.resume import PARTIAL, resumed_file
from stream_anon.io.sheets import refuse_to_overwrite, sheet_for
from stream_anon.io.tables import TableError, kind_of, read_parts
from stream_anon.runtime.anonymize import Anonymization
from stream_anon.runtime.recording import Instants, Replay


def replay(
    data: Annotated[Path, typer.Argument(help="The recording: .csv, .jsonl or .parquet.", show_default=False)],
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    out: Annotated[Path, typer.Option("--output", "-o", help="The file to write: .csv or .jsonl.", show_default=False)],
    time_field: Annotated[
        str | None,
        typer.Option("--time", help="The field with the time of each record: ISO 8601, or seconds since 1970."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=1e-6, help="Records a second, for a recording without times.")
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", "-a", help=f"A batch algorithm instead of the stream's: {', '.join(ALGORITHMS)}."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the batch algorithm. Repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of a batch algorithm.")] = 0,
    dead_letters: Annotated[
        Path | None, typer.Option("--dead-letters", help="Write what is told of rejected rows to this file.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Agree to long work.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Anonymize a recording as if it came in now, each record at its own time, or by a batch algorithm.

    The same recording, policy and secret give the same output, byte by byte. A run that was interrupted leaves
    OUT.partial; the same command compares it with what it makes, and goes on behind it: each record is there once.

    [bold]Examples[/bold]

        stream-anon replay june.jsonl -p policy.yaml -o june-anonymous.jsonl --time admitted

        stream-anon replay june.jsonl -p policy.yaml -o june-anonymous.jsonl --algorithm sweep
    """
    _, schema = prepare(policy)
    _check(schema, data, out, time_field, rate, algorithm)
    with bars(quiet=as_json) as bar, _letters(dead_letters, as_json) as letters, resumed_file(out) as file:
        if file.left:
            output.say(f"{out}{PARTIAL}: {file.left:,} bytes are there; going on behind them")
        sheet = sheet_for(out, cast(IO[bytes], file))
        if algorithm is None:
            make_ready(schema.policy.algorithm, quiet=as_json)
            run = Replay(schema, Instants(time_field, rate), time_field, sheet)
            run.run(read_parts(data), letters, bar("replaying"))
            found: dict[str, Any] = run.pipeline.tally.summary()
        else:
            batch = Anonymization(schema, algorithm, options_of(settings or []), seed)
            batch.read(read_parts(data), letters, bar("reading"))
            agree(batch, yes, bar.progress)
            batch.divide(bar(f"grouping ({algorithm})"))
            batch.write(sheet, bar("writing"))
            found = batch.summary()
    if as_json:
        output.print_json(found | {"output": str(out)})
        return
    seen = found.get("consumed", found.get("rows", 0))
    rejected = sum(found["rejected"].values())
    output.say(
        f"{seen:,} records in: {found['published']:,} published, {found['suppressed']:,} suppressed, "
        f"{rejected:,} rejected; information lost: {found['loss']:.4f}"
    )
    if algorithm is None:
        output.say(f"delay: {found['delay_mean']:.2f} s on average, {found['delay_max']:.2f} s at most")
    output.say(f"next: look at {out}")


def _check(
    schema: Schema, data: Path, out: Path, time_field: str | None, rate: float | None, algorithm: str | None
) -> None:
    kind_of(data)
    if kind_of(out) == "parquet":
        raise TableError(f"{out}: a Parquet file cannot be continued; write .jsonl or .csv, or use anonymize")
    refuse_to_overwrite(out)
    if algorithm is None and (time_field is None) == (rate is None):
        raise typer.BadParameter("a stream needs a clock: say --time FIELD, or --rate N", param_hint="--time")
    if not schema.keys.stable:
        raise StreamAnonError(
            "replay needs a policy with a secret, or an interrupted run could not be made again: "
            "secret: ${STREAM_ANON_SECRET}"
        )


@contextmanager
def _letters(path: Path | None, as_json: bool) -> Iterator[DeadLetters]:
    if path is None:
        yield DeadLetters(None, as_json)
        sys.stderr.flush()
        return
    with resumed_file(path) as file:
        yield DeadLetters(cast(IO[bytes], file), as_json)
