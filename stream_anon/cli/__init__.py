"""The commands, one per file; this one gathers them and decides how a failure is told and with which code it ends."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from stream_anon import __version__
from stream_anon.cli import (
    anonymize,
    attack,
    audit,
    broker,
    check,
    compare,
    demo,
    doctor,
    feed,
    handover,
    init,
    output,
    pipe,
    preview,
    replay,
    schema,
    topics,
)
from stream_anon.cli import run as run_command
from stream_anon.cli.interrupt import INTERRUPTED
from stream_anon.errors import PolicyError, StreamAnonError

app = typer.Typer(
    name="stream-anon",
    no_args_is_help=True,
    suggest_commands=False,  # click does
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("init")(init.init)
app.command("check")(check.check)
app.command("preview")(preview.preview)
app.command("compare")(compare.compare)
app.command("pipe")(pipe.pipe)
app.command("run")(run_command.run)
app.command("doctor")(doctor.doctor)
app.command("handover")(handover.handover)
app.command("broker")(broker.broker)
app.command("topics")(topics.topics)
app.command("feed")(feed.feed)
app.command("anonymize")(anonymize.anonymize)
app.command("replay")(replay.replay)
app.command("audit")(audit.audit)
app.command("attack")(attack.attack)
app.command("schema")(schema.schema)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stream-anon {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print a traceback on internal errors (also: STREAM_ANON_DEBUG=1).")
    ] = False,
) -> None:
    """Anonymize a stream of personal records: groups of at least k people, within a delay bound.

    Data goes to stdout, talk to stderr. Exit codes: 0 done, 1 failure, 2 usage, 3 policy invalid,
    4 audit failed, 130 interrupted.
    """


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; no exception leaves this function."""
    try:
        code = _call(arguments)
        sys.stdout.flush()
    except PolicyError as error:
        output.show(error.diagnostics)
        return error.exit_code
    except StreamAnonError as error:
        output.say(f"error: {error}", style="bold red")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader left; what remains in the buffer must not raise again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        _internal_error(error, debug="--debug" in arguments or os.environ.get("STREAM_ANON_DEBUG") == "1")
        return 1
    return code


def _call(arguments: Sequence[str]) -> int:
    """Let typer tell of wrong usage (2) and of an interruption (130); it leaves by SystemExit in any case."""
    try:
        app(list(arguments), prog_name="stream-anon")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


def _internal_error(error: Exception, debug: bool) -> None:
    """Name the kind of error only: its text could hold a data value. A traceback is for those who ask for it."""
    if debug:
        traceback.print_exception(error)
    output.say(
        f"internal error ({type(error).__name__}): this is a defect of stream-anon. "
        "Please report it with the command and the output of: STREAM_ANON_DEBUG=1 stream-anon ...",
        style="bold red",
    )
