"""Anonymize a table in parts: spill, cut, work on each part in a process of its own, merge. Memory is that of a part.

Which rows are in a part, and so every group, is a function of the rows, the policy and the secret, not of how many
processes work or when they finish.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from stream_anon.batch import build, partition
from stream_anon.batch.cut_tree import LEAST, MOST, SAMPLE, CutTree, Sampler, grow, scatter, wanted
from stream_anon.batch.support import check
from stream_anon.core.batch import Batch
from stream_anon.core.decode import LineCount, Rejection
from stream_anon.core.encode import Encoder
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.veto import Veto
from stream_anon.core.loss.columns import bins_of
from stream_anon.core.schema import Schema
from stream_anon.errors import StreamAnonError
from stream_anon.formats.tables import Part
from stream_anon.local.anonymize import sums_of
from stream_anon.local.parts.divided import Told, Way, divide_part
from stream_anon.local.parts.fragments import merge, write_fragment
from stream_anon.local.parts.place import SpillError
from stream_anon.local.parts.spill import Spill
from stream_anon.local.summary import summary_of
from stream_anon.observe.limits import NO_LIMITS, Limits
from stream_anon.observe.tally import Tally

Progress = Callable[[float], None]
SPOOL = "all"


@dataclass(frozen=True)
class Job:
    """What every process needs: the algorithm and the schema, the folder, and what the output shall be.

    `told` is asked what is to be known of the groups of each part.
    """

    schema: Schema
    algorithm: str
    options: Mapping[str, Any] | None
    seed: int
    folder: Path
    target: Path
    quote_formulas: bool
    told: Told | None = None


@dataclass(frozen=True)
class Sizes:
    """How large parts may be; `parts` is how many are asked for, None for as many as there must be."""

    parts: int | None = None
    least: int = LEAST
    most: int = MOST
    sample: int = SAMPLE


class PartedAnonymization:
    """One table in parts, in three steps that the caller takes in order: `read`, `divide`, `write`.

    The folder holds what waits. A step that was finished there by an earlier run of the same job is not taken again.
    """

    def __init__(self, job: Job, sizes: Sizes = Sizes(), workers: int = 1, limits: Limits = NO_LIMITS) -> None:
        build(job.algorithm, job.options, job.seed)
        check(job.algorithm, job.schema)
        schema = job.schema
        self.job, self.schema, self.algorithm = job, schema, job.algorithm
        self.tally = Tally([column.name for column in schema.quasi], schema.requirements.k, schema.counts)
        self.counts: list[int] = []
        self.told: list[dict[str, Any]] = []
        self._sizes, self._workers, self._limits = sizes, workers, limits
        self._spill = Spill(job.folder)
        self._bins: list[list[int]] = [[0]] * len(schema.quasi)
        self._sums = sums_of(schema, self._bins)
        self._finished = 0

    def read(self, parts: Iterable[Part], reject: Callable[[Sequence[Rejection]], None], progress: Progress) -> None:
        """Encode all rows, report those that cannot be, and put each into the file of its part.

        1. Spool the rows and draw a sample of them.
        2. Grow the tree.
        3. Distribute the rows.
        """
        if self._resume():
            self._limits.check(self.tally)
            return
        encoder, sampler = Encoder(self.schema), Sampler(self._sizes.sample)
        for part in parts:
            encoded = part.encode(encoder, np.zeros(len(part)))
            self.tally.read(len(part), encoded.rejections)
            if encoded.rejections:
                reject(encoded.rejections)
            self.tally.lines = part.lines
            sampler.add(encoded.batch.qi)
            self.schema.requirements.observe(encoded.batch.facts)
            self._spill.add(SPOOL, encoded.batch)
            progress(part.reached * 0.8)
        self._spill.close()
        self._limits.check(self.tally)
        sample = sampler.sample(len(self.schema.quasi))
        self._bins = bins_of(sample)
        self._distribute(self._tree(sampler, sample), sampler.seen, progress)
        self._remember()

    def _tree(self, sampler: Sampler, sample: Ints) -> CutTree:
        count = wanted(sampler.seen, self._sizes.parts, self._sizes.least, self._sizes.most)
        least = max(self._sizes.least, 2 * self.schema.requirements.k) * len(sample) / max(sampler.seen, 1)
        return grow(sample, self.schema, count, least)

    def _distribute(self, tree: CutTree, total: int, progress: Progress) -> None:
        self.counts, done = [0] * len(tree.order), 0
        for rows in self._spill.read(SPOOL):
            for number, chosen in scatter(rows, tree):
                self.counts[number] += len(chosen)
                self._spill.add(_name(number), chosen)
            done += len(rows)
            progress(0.8 + 0.2 * done / max(total, 1))
        self._spill.close()
        self._spill.remove(SPOOL)

    def warm_up(self) -> None:
        """Divide a few rows and discard the result: what this compiles, every process has."""
        for rows in self._spill.read(_name(0)):
            partition(
                self.algorithm, rows.take(slice(0, 200)), self.schema, self.job.options, self.job.seed, observed=True
            )
            return

    def divide(self, progress: Progress) -> None:
        """Work on all parts; rows that one cannot place go to its neighbour, and at last to a part of their own.

        Every second part is worked on first, so that its neighbour is not finished yet when it is given rows. Who is
        given whose rows depends on the places of the parts alone.
        """
        own, done = self._sources(), 0
        found: list[dict[str, Any]] = []
        numbers = range(len(own))
        odd = [_Task(n, own[n], _left(n), self._bins) for n in numbers if n % 2]
        even = [_Task(n, (*own[n], _left(n + 1)), _left(n), self._bins) for n in numbers if n % 2 == 0]
        last = [_Task(len(own), tuple(_left(n) for n in numbers if n % 2 == 0), None, self._bins)]
        for tasks in (odd, even, last):
            for _ in self._worked(tasks):
                done += 1
                progress(done / (len(own) + 1))
            for task in tasks:
                found.append(msgspec.json.decode((self.job.folder / f"{task.number}.done").read_bytes()))
                self.tally.add(found[-1])
        self._finished = len(own) + 1
        tally = self.tally
        if tally.published + tally.suppressed + tally.rejected.total() != tally.consumed:
            raise SpillError(f"{self.job.folder}: rows of it are missing; remove it, and begin again")
        self._sums = sums_of(self.schema, self._bins)
        for figures in found:
            self._sums.merge(figures["sums"])
        self.told = [figures["told"] for figures in found if "told" in figures]
        self._limits.check(tally)

    def _sources(self) -> list[tuple[str, ...]]:
        """Return the files of each part; one that must not leave even as a whole is joined with the next, whole."""
        names = [_name(number) for number in range(len(self.counts))]
        if Veto(self.schema).blind:
            return [(name,) for name in names]
        with self._pool(len(names)) as pool:
            good = list(pool.map(_may_leave, names))
        found: list[tuple[str, ...]] = []
        waiting: tuple[str, ...] = ()
        for name, holds in zip(names, good, strict=True):
            waiting = (*waiting, name)
            if holds:
                found.append(waiting)
                waiting = ()
        return [*found[:-1], (*(found[-1] if found else ()), *waiting)]

    @contextmanager
    def _pool(self, tasks: int) -> Iterator[ProcessPoolExecutor]:
        """Start processes, and end them at once if anything fails: they hold raw values, and the folder."""
        others = set(active_children())
        with ProcessPoolExecutor(min(self._workers, tasks), get_context("fork"), _begin, (self.job,)) as pool:
            try:
                yield pool
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                children = set(active_children()) - others
                for child in children:
                    child.terminate()
                for child in children:
                    child.join()
                if isinstance(error, BrokenProcessPool):
                    raise StreamAnonError(
                        "a process that worked on a part was ended from outside: if memory ran out, ask for more parts "
                        "(--parts), or for fewer processes (--workers)"
                    ) from None
                raise

    def _worked(self, tasks: Sequence[_Task]) -> Iterator[None]:
        """Work on parts, as many at once as there are workers, and yield once for each that is finished."""
        todo = [task for task in tasks if not (self.job.folder / f"{task.number}.done").exists()]
        yield from [None] * (len(tasks) - len(todo))
        if not todo:
            return
        with self._pool(len(todo)) as pool:
            for future in as_completed([pool.submit(_work, task) for task in todo]):
                future.result()
                yield

    def write(self, file: IO[bytes], progress: Progress) -> None:
        """Write what all parts published, in the order of group ids."""
        places = [self.job.folder / f"{number}.out" for number in range(self._finished)]
        merge(places, self.job.target, file, progress)

    def summary(self) -> dict[str, Any]:
        """Return the results as plain data."""
        return summary_of(self.algorithm, self.tally, self._sums.measures(self.tally.k)) | {"parts": self.counts}

    def _remember(self) -> None:
        """Note that all rows are in the files of their parts."""
        tally = self.tally
        lines = None if tally.lines is None else asdict(tally.lines)
        found = {"counts": self.counts, "consumed": tally.consumed, "rejected": dict(tally.rejected), "lines": lines}
        found |= {"bins": self._bins}
        draft = self.job.folder / "read.draft"
        draft.write_bytes(msgspec.json.encode(found))
        draft.replace(self.job.folder / "read.done")

    def _resume(self) -> bool:
        """Take up what an earlier run has read; throw away what it left half done."""
        done = self.job.folder / "read.done"
        if not done.exists():
            for file in self.job.folder.glob("*.rows"):
                file.unlink()
            return False
        found = msgspec.json.decode(done.read_bytes())
        self.counts, self._bins = found["counts"], found["bins"]
        self.tally.read(found["consumed"])
        self.tally.rejected.update(found["rejected"])
        self.tally.lines = None if found["lines"] is None else LineCount(**found["lines"])
        for number, count in enumerate(self.counts):
            there = 0
            for rows in self._spill.read(_name(number)):
                self.schema.requirements.observe(rows.facts)
                there += len(rows)
            if there != count:
                raise SpillError(f"{self.job.folder}: rows of part {number} are missing; remove it, and begin again")
        return True


@dataclass(frozen=True)
class _Task:
    """A part to work on: the files of its rows, and that of the rows it cannot place, None if these are given up.

    `bins` are those in which distributions are compared, the same for all parts.
    """

    number: int
    sources: tuple[str, ...]
    left: str | None
    bins: list[list[int]]


def _name(number: int) -> str:
    return f"part-{number}"


def _left(number: int) -> str:
    return f"left-{number}"


_job: Job | None = None


def _begin(job: Job) -> None:
    """Keep the job for all parts that this process works on; it was inherited, not sent.

    Who started this process decides when it ends; where that one was killed, nobody is left to work for.
    """
    global _job
    _job = job
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_outlive_nobody, name="parent", daemon=True).start()


def _outlive_nobody() -> None:
    """End this process when its parent is gone."""
    parent = parent_process()
    assert parent is not None  # noqa: S101 - it was started by one
    parent.join()
    os._exit(1)


def _may_leave(name: str) -> bool:
    """Tell whether all rows of a part together could be published, if nothing of them were told apart."""
    job = _job
    assert job is not None  # noqa: S101 - set when the process began
    found = [rows.facts for rows in Spill(job.folder).read(name)]
    if not found:
        return False
    rows = Batch.concat(found)
    return Veto(job.schema).possible(rows, np.arange(len(rows)))


def _work(task: _Task) -> None:
    """Anonymize one part, write its fragment and the rows it could not place, and note its figures last."""
    job = _job
    assert job is not None  # noqa: S101 - set when the process began
    schema, spill = job.schema, Spill(job.folder)
    chunks = [rows for source in task.sources for rows in spill.read(source)]
    rows = Batch.concat(chunks) if chunks else None
    del chunks
    way = Way(job.algorithm, job.options, job.seed, task.bins, job.told)
    found = divide_part(rows, schema, way, given_up=task.left is None)
    if rows is not None and task.left is not None:
        spill.remove(task.left)
        spill.add(task.left, rows.take(found.suppressed))
        spill.close()
    del rows
    write_fragment(job.folder / f"{task.number}.out", found.groups, job.target, job.quote_formulas)
    draft = job.folder / f"{task.number}.figures"
    draft.write_bytes(msgspec.json.encode(found.figures))
    draft.replace(job.folder / f"{task.number}.done")
