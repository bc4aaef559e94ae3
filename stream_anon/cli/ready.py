"""Compile the kernels before a clock runs, and tell the user when that takes long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from stream_anon.cli import output
from stream_anon.core.kernels import COMPILED
from stream_anon.core.schema import Schema
from stream_anon.local.anonymize import Anonymization
from stream_anon.local.warmup import warm_up

PATIENCE = 1.5
"""Seconds after which compiling is announced; kernels from disk load faster."""


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
    """Print at once that numba is missing, or after a while that compiling takes long."""
    remark = Timer(PATIENCE, output.say, ["compiling the kernels, once for this machine: up to a minute ..."])
    remark.daemon = True
    if not quiet and COMPILED:
        remark.start()
    elif not quiet:
        output.say("numba is not installed, so this runs slowly; to speed it up: pip install 'stream-anon[speed]'")
    try:
        yield
    finally:
        remark.cancel()
