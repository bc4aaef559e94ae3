"""Gets the compiled kernels ready before a clock runs, and says so when that takes long enough to wonder."""

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
"""Seconds. Kernels that lie on disk are read in less."""


def make_ready(schema: Schema, quiet: bool = False) -> None:
    """Compile or read what the policy's stream algorithm needs."""
    with _told(quiet):
        if COMPILED:
            warm_up(schema)


def make_batch_ready(run: Anonymization) -> None:
    """Compile or read what a batch algorithm needs for the rows it has read."""
    with _told(quiet=False):
        if COMPILED:
            run.warm_up()


@contextmanager
def _told(quiet: bool) -> Iterator[None]:
    """Say what is missing at once, and what takes long as soon as it does."""
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
