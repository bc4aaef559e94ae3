"""The commands, one per file; this one gathers them and decides how a failure is told and with which code it ends."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stream_anon import __version__
from stream_anon.cli import output
from stream_anon.cli.interrupt import INTERRUPTED
from stream_anon.errors import PolicyError, StreamAnonError

COMMANDS = (
    "demo", "init", "check", "preview", "compare", "pipe", "run", "doctor", "handover", "broker", "topics", "feed",
    "anonymize", "replay", "audit", "attack", "schema",
)  # fmt: skip
"""In the order of the help; each is a function in a file of its own name."""

_SETTINGS = {"help_option_names": ["-h", "--help"]}


class _LazyCommands(TyperGroup):
    """Loads a command when it is called, so that one does not wait for what the others need."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Name the command that was probably meant, where there is none of the name given."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            close = get_close_matches(args[0], COMMANDS, 1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            alone = typer.Typer(rich_markup_mode="rich", pretty_exceptions_enable=False, add_completion=False)
            function = getattr(import_module(f"stream_anon.cli.{cmd_name}"), cmd_name)
            alone.command(cmd_name, context_settings=_SETTINGS)(function)
            self.commands[cmd_name] = typer.main.get_command(alone)
        return self.commands[cmd_name]


app = typer.Typer(
    name="stream-anon",
    cls=_LazyCommands,
    no_args_is_help=True,
    suggest_commands=False,  # click does
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings=_SETTINGS,
)


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
    4 audit failed, 5 too much lost, 130 interrupted.
    """


def _remedy(error: StreamAnonError) -> str:
    """Return what to do about a message of one word: the name that a Kafka client has for what the broker did."""
    return "" if " " in str(error) else ": the broker does not do its part; ask it why: stream-anon doctor -p POLICY"


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; no exception leaves this function."""
    try:
        code = _call(arguments)
        sys.stdout.flush()
    except PolicyError as error:
        output.show(error.diagnostics)
        return error.exit_code
    except StreamAnonError as error:
        output.say(f"error: {error}{_remedy(error)}", style="bold red")
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
