"""`stream-anon pipe`: anonymize JSON lines from stdin to stdout. Rejected lines are reported by place, not content."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from stream_anon.cli import output
from stream_anon.cli.interrupt import interruptible
from stream_anon.cli.options import Encoding, MaxRejected, MaxSuppressed, QuoteFormulas
from stream_anon.cli.prepare import prepare
from stream_anon.cli.ready import make_ready
from stream_anon.cli.results import lines_in_words, raised_in_words, whole
from stream_anon.core.decode import Reject, Rejection
from stream_anon.errors import StreamAnonError, TooMuchLost
from stream_anon.formats.csv_records import CsvLines
from stream_anon.formats.text.lines import LINE_LIMIT, Lines
from stream_anon.formats.writers import writer_for
from stream_anon.local.pipe import Pipe
from stream_anon.local.pipeline import Pipeline
from stream_anon.observe.limits import Limits
from stream_anon.report.result import NO_SUBJECT


class To(StrEnum):
    """What is written; each is the suffix of files of its kind."""

    JSON = "jsonl"
    CSV = "csv"
    TSV = "tsv"


class OutputError(StreamAnonError):
    """A requested output cannot be written."""


SHOWN = 20
"""Rejected lines that are listed in words: enough to see what is wrong; a whole file of them would hide it."""


class DeadLetters:
    """A report of rejected lines, one line each: JSON into a file, or words (JSON on request) on stderr.

    In words only the first `SHOWN` are listed. `place` says where the record of a number is, if not on that line.
    """

    def __init__(
        self, file: IO[bytes] | None, as_json: bool, place: Callable[[int], Mapping[str, Any]] | None = None
    ) -> None:
        self._file = file
        self._as_json = as_json or file is not None
        self._place = place or (lambda number: {"line": number})
        self._count = 0

    def __call__(self, rejections: Sequence[Rejection]) -> None:
        """Write the rejections and flush."""
        before, self._count = self._count, self._count + len(rejections)
        if not self._as_json:
            rejections = rejections[: max(SHOWN - before, 0)]
        letters = "".join([f"{self._letter(rejection)}\n" for rejection in rejections])
        if self._file is None:
            sys.stderr.write(letters)
            sys.stderr.flush()
        else:
            self._file.write(letters.encode())
            self._file.flush()
        if not self._as_json and before <= SHOWN < self._count:
            output.say("more are rejected; from here on they are only counted: --dead-letters FILE lists all of them")

    def _letter(self, rejection: Rejection) -> str:
        place = self._place(rejection.index)
        if self._as_json:
            return json.dumps({**place, "code": str(rejection.code), "column": rejection.column})
        where = ", ".join(f"{name} {value}" for name, value in place.items())
        return f"{where}: rejected: {rejection.code}" + f" ({rejection.column})" * bool(rejection.column)


def pipe(
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The policy file (YAML).", show_default=False)],
    dead_letters: Annotated[
        Path | None,
        typer.Option("--dead-letters", help="Append the place and the code of each rejected line to this file."),
    ] = None,
    from_csv: Annotated[bool, typer.Option("--csv", help="The input is CSV; its first line names the fields.")] = False,
    to: Annotated[To, typer.Option("--to", help="What is written; the first line of CSV names the fields.")] = To.JSON,
    quote_formulas: QuoteFormulas = True,
    encoding: Encoding = None,
    max_line: Annotated[
        int, typer.Option("--max-line", min=2, help="Reject lines longer than this many bytes.")
    ] = LINE_LIMIT,
    max_rejected: MaxRejected = None,
    max_suppressed: MaxSuppressed = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Report only rejected lines and failures.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Report everything on stderr as JSON lines.")] = False,
) -> None:
    """Anonymize JSON lines, or CSV, from stdin; JSON lines, or CSV, go to stdout.

    Each line leaves in a group that satisfies the policy, within its delay bound, or not at all. Ctrl-C, SIGTERM and
    the end of the input publish what is inside and end; a second Ctrl-C ends at once. A slow reader slows the input
    down, nothing is dropped.

    [bold]Examples[/bold]

        stream-anon pipe -p policy.yaml < records.jsonl > anonymous.jsonl

        stream-anon pipe -p policy.yaml --csv --to csv < records.csv > anonymous.csv

        tail -f records.jsonl | stream-anon pipe -p policy.yaml --dead-letters rejected.jsonl | consumer
    """
    loaded, schema = prepare(policy)
    if sys.stdin is None or sys.stdout is None:
        raise StreamAnonError("stdin and stdout must be open: the records come from one and go to the other")
    talks = not (quiet or as_json)
    if talks and not schema.keys.stable:
        output.say("the policy has no secret: group ids will differ from run to run")
    with opened(dead_letters) as file:
        _keep_apart(sys.stdin.fileno(), sys.stdout.fileno(), *([file.fileno()] if file else []))
        lines = Lines(sys.stdin.fileno(), max_line, keep_blank=from_csv, encoding=encoding)
        source = CsvLines(lines) if from_csv else lines
        limits = Limits.of(schema.policy, max_rejected, max_suppressed)
        sink = sys.stdout.buffer
        writer = writer_for(Path(f"output.{to}"), sink, quote_formulas)
        run = Pipe(schema, source, sink, DeadLetters(file, as_json), time.monotonic, limits, writer)
        make_ready(schema, quiet=not talks)
        if talks and sys.stdin.isatty():
            output.say(f"reading {'CSV' if from_csv else 'JSON lines'} from the terminal; Ctrl-D ends")
        os.set_blocking(sys.stdout.fileno(), True)
        with interruptible(run.stop) as interrupt:
            _run(run)
    if as_json:
        sys.stderr.write(json.dumps(_result(run.pipeline)) + "\n")
    elif not quiet:
        for line in _summary(run.pipeline, loaded.source.file, dead_letters):
            output.say(line)
    if run.broken is not None:
        raise TooMuchLost(run.broken)
    interrupt.leave()


@contextmanager
def opened(path: Path | None) -> Iterator[IO[bytes] | None]:
    """Open the file of dead letters for appending; yield None without one."""
    if path is None:
        yield None
        return
    try:
        file = path.open("ab")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with file:
            yield file
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def _keep_apart(*descriptors: int) -> None:
    """Raise OutputError if two of these are one file on a disk: what is written would be read again, for ever."""
    files = [found for found in map(os.fstat, descriptors) if stat.S_ISREG(found.st_mode)]
    if any(os.path.samestat(one, other) for one, other in combinations(files, 2)):
        raise OutputError("records, output and dead letters must be different files: name another one")


def _run(run: Pipe) -> None:
    try:
        run.run()
    except BrokenPipeError:
        # The reader left; what remains in the buffer must not raise again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"an output cannot be written: {error.strerror}") from None


def _result(pipeline: Pipeline) -> dict[str, Any]:
    tally = pipeline.tally
    more = {"delay_bound": pipeline.bound, "late": pipeline.late, "hurried_groups": pipeline.hurried}
    return tally.summary() | {"groups": tally.groups.total()} | more


def _summary(pipeline: Pipeline, policy: str, dead_letters: Path | None) -> Iterator[str]:
    tally = pipeline.tally
    codes = ", ".join(f"{count:,} {code}" for code, count in sorted(tally.rejected.items()))
    groups = _count(tally.groups.total(), "group")
    yield (
        f"{_count(tally.consumed, 'record')} in: {tally.published:,} published in {groups}, "
        f"{tally.suppressed:,} suppressed, {tally.rejected.total():,} rejected" + (f" ({codes})" if codes else "")
    )
    if tally.lines is not None:
        yield lines_in_words(tally.lines)
    if tally.published:
        bound = "" if pipeline.bound is None else f", bound {pipeline.bound:g} s"
        losses = ", ".join(f"{name} {loss:.3f}" for name, loss in tally.losses.items())
        yield f"information lost: {tally.loss:.3f}{whole(tally.suppressed)} ({losses})"
        yield f"delay: {tally.delays.mean:.2f} s on average, {tally.delays.max:.2f} s at most{bound}"
    yield from raised_in_words(tally.summary())
    if tally.counts == "records":
        yield NO_SUBJECT
    if pipeline.late:
        yield f"late: {pipeline.late:,} records were out after the bound; the reader or this machine was too slow"
    if pipeline.hurried:
        yield f"hurried: {pipeline.hurried:,} groups left before their time, the buffer (stream.max_buffer) was full"
    yield f"next: {_next_step(pipeline, policy, dead_letters)}"


def _next_step(pipeline: Pipeline, policy: str, dead_letters: Path | None) -> str:
    tally = pipeline.tally
    if not tally.consumed:
        return f"stream-anon pipe -p {output.quoted(policy)} < RECORDS"
    if tally.rejected.total() == tally.consumed and tally.rejected.keys() <= {Reject.NOT_JSON, Reject.NOT_OBJECT}:
        return "no line was a JSON object; if the input is CSV, pass --csv"
    if tally.rejected:
        there = f"see {dead_letters}, then" if dead_letters else "find out why lines were rejected:"
        return f"{there} stream-anon check {output.quoted(policy)} --data SAMPLE"
    if pipeline.late:
        clock = f"stream-anon replay RECORDS -p {output.quoted(policy)} --rate N -o OUT"
        return f"let records come more slowly, or, for a file, on a clock of its own: {clock}"
    if tally.suppressed:
        return f"a longer stream.max_delay or a smaller k in {policy} suppresses less"
    return f"stream-anon audit PUBLISHED -p {output.quoted(policy)} --raw RECORDS"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
