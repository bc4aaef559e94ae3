"""Compile the kernels before a clock runs, and say so if they have to be compiled: loading is not worth a word."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stream_anon.cli import output
from stream_anon.core.kernels import COMPILED, WANTED
from stream_anon.core.schema import Schema
from stream_anon.local.anonymize import Anonymization
from stream_anon.local.warmup import warm_up

_COMPILES = "numba:run_pass"
"""What numba does when it compiles, and does not when it loads what it compiled before."""


def make_ready(schema: Schema, quiet: bool = False) -> None:
    """Compile or load what the policy's stream algorithm needs."""
    with _announced(quiet):
        if COMPILED:
            warm_up(schema)


def make_batch_ready(run: Anonymization) -> None:
    """Compile or load what a batch algorithm needs for the rows it has read."""
    with _announced(quiet=False):
        if COMPILED:
            run.warm_up()


@contextmanager
def _announced(quiet: bool) -> Iterator[None]:
    """Print at once that numba is missing, or that kernels are compiled, and how long it took; one line if `quiet`."""
    if not COMPILED:
        if not quiet and WANTED:
            output.say("numba is not installed, so this runs slowly; to speed it up: pip install 'stream-anon[speed]'")
        yield
        return
    from numba.core import event

    class Compiling(event.Listener):
        """A listener that notes when the first kernel is compiled."""

        since: float | None = None

        def on_start(self, event: Any) -> None:
            """Note the time, and say it once."""
            if self.since is None:
                self.since = time.monotonic()
                if not quiet:
                    output.say("compiling the kernels, once for this machine: up to a minute ...")

        def on_end(self, event: Any) -> None:
            """Do nothing: others may follow."""

    listener = Compiling()
    event.register(_COMPILES, listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister(_COMPILES, listener)  # type: ignore[no-untyped-call]
        if listener.since is not None:
            output.say(f"compiled the kernels, once for this machine: {time.monotonic() - listener.since:.0f} s")
