"""How `run` talks: compact live lines and plain words in a terminal, JSON lines elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum

from rich.live import Live
from rich.text import Text

from stream_anon.cli import output
from stream_anon.observe.live.status import Status
from stream_anon.observe.live.summary import Summaries, lines_of
from stream_anon.observe.logs import log_to

_STYLES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red", "idle": "bold"}
_MARKS = {"good": "✓", "warn": "!", "bad": "✗", "idle": "…"}
_REDRAW = 0.5  # seconds


class LogFormat(StrEnum):
    """How the log is written; auto is text in a terminal and JSON elsewhere."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"

    @property
    def plain(self) -> bool:
        """Whether a person reads it."""
        return self is LogFormat.TEXT or (self is LogFormat.AUTO and sys.stderr.isatty())


@contextmanager
def told(status: Callable[[], Status], log_format: LogFormat, summaries: bool = True) -> Iterator[None]:
    """Log, and draw live lines where a person looks at a terminal; a worker among several has no `summaries`."""
    console = output.talk()
    moves = log_format.plain and summaries and console.is_terminal and not console.is_dumb_terminal
    with _lines(status) if moves else nullcontext(), logged(status, log_format, summaries):
        yield


@contextmanager
def logged(status: Callable[[], Status], log_format: LogFormat, summaries: bool = True) -> Iterator[None]:
    """Log in the wanted form, with a summary every half minute and at the end."""
    log_to(plain=log_format.plain)
    talk = Summaries(status).start() if summaries else None
    try:
        yield
    finally:
        if talk is not None:
            talk.close()


@contextmanager
def _lines(status: Callable[[], Status]) -> Iterator[None]:
    """Redraw the lines twice a second, and leave the last ones on the screen."""
    over = threading.Event()
    with Live(console=output.talk(), auto_refresh=False, redirect_stdout=False) as live:

        def draw() -> None:
            while not over.wait(_REDRAW):
                live.update(drawn(status()), refresh=True)

        thread = threading.Thread(target=draw, name="lines", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(5)
            live.update(drawn(status()), refresh=True)


def drawn(status: Status) -> Text:
    """Return the lines of a status, the first in its colour."""
    tone = status.verdict.tone
    first, *rest = lines_of(status)
    return Text("\n").join([Text(f"{_MARKS[tone]} {first}", style=_STYLES[tone]), *map(Text, rest)])
