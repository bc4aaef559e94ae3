"""`stream-anon anonymize --parts`: the same for tables larger than memory, part by part, by several processes."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import typer

from stream_anon import __version__
from stream_anon.cli.pipe import DeadLetters
from stream_anon.core.keys import keyed_bytes
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported
from stream_anon.formats.tables import TableError, read_parts
from stream_anon.formats.writers import new_file
from stream_anon.local.parts.divided import Told
from stream_anon.local.parts.fragments import can_write
from stream_anon.local.parts.place import job_digest, kept_folder, private_folder
from stream_anon.local.parts.run import Job, PartedAnonymization, Sizes
from stream_anon.observe.limits import Limits

AT_ONCE = 50_000
"""Rows read at once: enough that nothing is spent on the parts, few enough to be forgotten."""


@dataclass(frozen=True)
class Asked:
    """What was asked for: how many parts and processes, where they wait, and the algorithm with its options."""

    parts: str
    workers: int
    spill: Path | None
    algorithm: str
    options: dict[str, Any]
    seed: int
    quote_formulas: bool
    limits: Limits
    encoding: str | None = None
    told: Told | None = None
    """What a page asks of the groups of each part, None for no page."""

    def sizes(self) -> Sizes:
        """Return how many parts are wanted."""
        if self.parts == "auto":
            return Sizes()
        if not self.parts.isdecimal() or int(self.parts) < 1:
            raise typer.BadParameter("auto, or a number from 1 on", param_hint="--parts")
        return Sizes(int(self.parts))


def anonymize_in_parts(
    data: Path, out: Path, schema: Schema, asked: Asked, letters: IO[Any] | None, bar: Any, force: bool
) -> PartedAnonymization:
    """Read, divide and write a table part by part; what waits on disk is gone when this returns or fails."""
    if not can_write(out):
        raise TableError(f"{out}: parts can be written to .csv, .tsv, .jsonl and .parquet")
    if asked.spill is not None and not schema.keys.stable:
        raise Unsupported("--spill: a run can be continued only under a policy with a secret")
    with _ended_by_signal(), _told(out), _folder(data, out, schema, asked) as folder:
        job = Job(
            schema, asked.algorithm, asked.options, asked.seed, folder, out.resolve(), asked.quote_formulas, asked.told
        )
        run = PartedAnonymization(job, asked.sizes(), asked.workers, asked.limits)
        run.read(read_parts(data, AT_ONCE, encoding=asked.encoding), DeadLetters(letters, bar.quiet), bar("reading"))
        run.warm_up()
        bar.total = sum(run.counts)
        run.divide(bar(f"grouping {len(run.counts)} parts ({asked.algorithm})"))
        with new_file(out, force) as raw:
            run.write(raw, bar("writing"))
    return run


def _folder(data: Path, out: Path, schema: Schema, asked: Asked) -> AbstractContextManager[Path]:
    if asked.spill is None:
        return private_folder(out)
    secret = keyed_bytes(schema.keys.job, "parts").hex()  # the fingerprint does not depend on it, and groups do
    words = [__version__, schema.fingerprint, secret, asked.algorithm, repr(sorted(asked.options.items()))]
    words += [str(asked.seed), asked.parts, "".join(out.suffixes), str(asked.quote_formulas), str(asked.encoding)]
    words.append(str(asked.told is not None))
    return kept_folder(asked.spill, job_digest(data, words))


@contextmanager
def _told(out: Path) -> Iterator[None]:
    """Say what the system says where parts cannot be written: that a disk is full is no defect."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TableError(f"{out}: its parts, or dead letters, cannot be written: {error.strerror}") from None


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Let signals that end a process do so as Ctrl-C does, so that raw values do not stay on disk."""
    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]

    def end(number: int, frame: object) -> None:
        for each in numbers:  # another one must not interrupt the tidying up
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def measured_since(begin: float, cpu: float) -> dict[str, float]:
    """Return seconds and CPU seconds, those of ended children included."""
    return {"seconds": round(time.monotonic() - begin, 2), "cpu_seconds": round(cpu_seconds() - cpu, 2)}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its ended children."""
    import resource

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
