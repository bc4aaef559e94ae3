"""`stream-anon replay`: a recording through a stream or a batch algorithm; an interrupted run can be resumed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, cast

import typer

from stream_anon.batch import ALGORITHMS
from stream_anon.cli import output
from stream_anon.cli.anonymize import Bars, agree, bars, options_of
from stream_anon.cli.options import Encoding, MaxRejected, MaxSuppressed, QuoteFormulas
from stream_anon.cli.pipe import DeadLetters
from stream_anon.cli.prepare import prepare
from stream_anon.cli.ready import make_batch_ready, make_ready
from stream_anon.cli.replay_ends import Recording, recording, target, topic_in
from stream_anon.cli.results import audit_of, lines_in_words, raised_in_words, whole
from stream_anon.core.decode import Decoder, Reader
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.messages.messages import Messages
from stream_anon.formats.resume import resumed_file
from stream_anon.formats.writers import RecordWriter, keep_apart
from stream_anon.local.anonymize import Anonymization
from stream_anon.observe.limits import Limits
from stream_anon.replay.replay import Instants, Replay, own_times
from stream_anon.report.result import NO_SUBJECT


def replay(
    data: Annotated[
        str,
        typer.Argument(help="The recording: .csv, .jsonl, .parquet, or kafka:TOPIC for its past.", show_default=False),
    ],
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    out: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="What to write: .csv, .jsonl, or an empty kafka:TOPIC.", show_default=False
        ),
    ],
    since: Annotated[
        list[str] | None,
        typer.Option("--from", help="Of a topic: begin at OFFSET, PARTITION:OFFSET or a time. Repeatable."),
    ] = None,
    until: Annotated[
        list[str] | None,
        typer.Option("--to", help="Of a topic: end before OFFSET, PARTITION:OFFSET or a time. Repeatable."),
    ] = None,
    time_field: Annotated[
        str | None,
        typer.Option(
            "--time", help="Of a file: the field with the time of each record, ISO 8601 or seconds since 1970."
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=1e-6, help="Records a second, for a file without times.")
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
        Path | None,
        typer.Option("--dead-letters", help="Write the place and the code of each rejected row to this file."),
    ] = None,
    quote_formulas: QuoteFormulas = True,
    encoding: Encoding = None,
    max_rejected: MaxRejected = None,
    max_suppressed: MaxSuppressed = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start work that takes long without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")] = False,
) -> None:
    """Anonymize a recording as if it came in now, each record at its own time, or by a batch algorithm.

    The same recording, policy and secret give the same output, byte for byte. The same command resumes an
    interrupted run, each record once: a file leaves OUT.partial, a topic keeps the progress in a transaction.

    [bold]Examples[/bold]

        stream-anon replay june.jsonl -p policy.yaml -o june-anonymous.jsonl --time admitted

        stream-anon replay kafka:admissions -p policy.yaml -o kafka:june --from 2026-06-01 --to 2026-07-01

        stream-anon replay kafka:admissions -p policy.yaml -o all.csv --algorithm sweep
    """
    _, schema = prepare(policy)
    _check(schema, data, time_field, rate, algorithm, bool(since or until), encoding)
    keep_apart([None if topic_in(data) else Path(data), policy], [None if topic_in(out) else Path(out), dead_letters])
    options = options_of(settings or [])
    limits = Limits.of(schema.policy, max_rejected, max_suppressed)
    facts: dict[str, Any] = {"policy": schema.fingerprint, "algorithm": algorithm, "options": options, "seed": seed}
    facts |= {"time": time_field, "rate": rate, "encoding": encoding}
    with (
        recording(data, schema, since or (), until or (), encoding) as source,
        target(out, schema, facts | source.facts, quote_formulas) as goal,
    ):
        if goal.done:
            output.say(f"{out}: already complete; nothing was written")
            return
        goal.claim(source.settle(goal.kept))
        with bars(quiet=as_json) as bar, _letters(dead_letters, as_json, source) as letters:
            if algorithm is None:
                instants = own_times if topic_in(data) is not None else Instants(time_field, rate)
                make_ready(schema)
                run = Replay(schema, instants, time_field, goal.writer, limits, _reader(schema, data))
                run.run(source.parts(), letters, bar("replaying"))
                found: dict[str, Any] = run.pipeline.tally.summary()
            else:
                batch = Anonymization(schema, algorithm, options, seed, limits, _reader(schema, data))
                found = _divide(batch, source, letters, goal.writer, bar, yes)
    _report(found, data, out, policy, algorithm, as_json, encoding)


def _reader(schema: Schema, data: str) -> Callable[[Mapping[str, str]], Reader]:
    """Return what reads the recording: messages of a topic as a worker would read them, rows of a file as they are."""
    return Decoder if topic_in(data) is None else Messages(schema, wait=None).reader


def _divide(
    batch: Anonymization, source: Recording, letters: DeadLetters, writer: RecordWriter, bar: Bars, yes: bool
) -> dict[str, Any]:
    batch.read(source.parts(), letters, bar("reading"))
    agree(batch, yes, bar.progress)
    make_batch_ready(batch)
    batch.divide(bar(f"grouping ({batch.algorithm})"))
    batch.write(writer, bar("writing"))
    return batch.summary()


def _report(
    found: dict[str, Any],
    data: str,
    out: str,
    policy: Path,
    algorithm: str | None,
    as_json: bool,
    encoding: str | None,
) -> None:
    if as_json:
        output.print_json(found | {"output": out})
        return
    seen = found.get("consumed", found.get("rows", 0))
    rejected = sum(found["rejected"].values())
    output.say(
        f"{seen:,} records in: {found['published']:,} published, {found['suppressed']:,} suppressed, "
        f"{rejected:,} rejected; information lost: {found['loss']:.4f}{whole(found['suppressed'])}"
    )
    if lines := lines_in_words(found.get("lines")):
        output.say(lines)
    if algorithm is None:
        output.say(f"delay: {found['delay_mean']:.2f} s on average, {found['delay_max']:.2f} s at most")
    for line in raised_in_words(found):
        output.say(line)
    if found["k_counts"] == "records":
        output.say(NO_SUBJECT, style="yellow")
    output.say(f"next: {audit_of(out, policy, data, encoding)}")


def _check(
    schema: Schema,
    data: str,
    time_field: str | None,
    rate: float | None,
    algorithm: str | None,
    spanned: bool,
    encoding: str | None,
) -> None:
    topic = topic_in(data) is not None
    if topic and (time_field or rate):
        raise typer.BadParameter("the records of a topic have their own times", param_hint="--time")
    if topic and encoding:
        raise typer.BadParameter("records of a topic are in UTF-8: leave it out", param_hint="--encoding")
    if spanned and not topic:
        raise typer.BadParameter("a file is read whole; only a topic has offsets", param_hint="--from")
    if not topic and algorithm is None and (time_field is None) == (rate is None):
        raise typer.BadParameter("a stream needs a clock: pass --time FIELD, or --rate N", param_hint="--time")
    if not schema.keys.stable:
        raise StreamAnonError(
            "replay needs a policy with a secret, or an interrupted run could not be made again: "
            "secret: ${STREAM_ANON_SECRET}"
        )


@contextmanager
def _letters(path: Path | None, as_json: bool, source: Recording) -> Iterator[DeadLetters]:
    if path is None:
        yield DeadLetters(None, as_json, source.place)
        sys.stderr.flush()
        return
    with resumed_file(path) as file:
        yield DeadLetters(cast(IO[bytes], file), as_json, source.place)
