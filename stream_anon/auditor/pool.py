"""A pool of rows that wait until their group is complete; beyond a limit they wait on disk, divided by group."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.numbers import Rows

IN_MEMORY = 1_000_000
"""Rows that wait in memory: about 50 MB."""

PARTS = 32
"""Files on disk. Each holds whole groups, and one of them is read at a time."""

_MANY = 10_000
"""Rows above which it is worth waiting for as many again before looking for whole groups."""

U64 = npt.NDArray[np.uint64]


class Pool:
    """A pool of rows: `add` them in any order, take complete groups with `whole` and everything else with `rest`.

    What is handed out is sorted by group and row.
    """

    def __init__(self, in_memory: int = IN_MEMORY, repeats: bool = False) -> None:
        self._limit, self._repeats = in_memory, repeats
        self._waiting: list[Rows] = []
        self._count = 0
        self._looked = 0
        self._files: list[IO[bytes]] = []
        self._dtype: np.dtype[np.void] | None = None

    def __len__(self) -> int:
        return self._count

    def add(self, rows: Rows) -> None:
        """Add more rows to the pool."""
        self._dtype = rows.dtype
        self._waiting.append(rows)
        self._count += len(rows)
        if self._count > self._limit:
            self._spill()

    def whole(self) -> Rows | None:
        """Take the groups that have at least the declared number of rows; None if it is too early to look again."""
        if self._files or not self._count or (self._count > _MANY and self._count < 2 * self._looked):
            return None
        rows = _sorted(np.concatenate(self._waiting))
        complete = whole_groups(rows, self._repeats)
        self._waiting = [rows[~complete]]
        self._count = self._looked = len(self._waiting[0])
        return rows[complete] if complete.any() else None

    def rest(self) -> Iterator[Rows]:
        """Yield all remaining rows, a part at a time; no group is in two parts."""
        if not self._files:
            if self._count:
                yield _sorted(np.concatenate(self._waiting))
        else:
            self._spill()
            for file in self._files:
                file.seek(0)
                rows = np.frombuffer(file.read(), dtype=self._dtype)
                file.close()
                if len(rows):
                    yield _sorted(rows)
        self._waiting, self._files, self._count = [], [], 0

    def _spill(self) -> None:
        if not self._files:
            self._files = [
                tempfile.TemporaryFile(prefix="stream-anon-audit-")  # noqa: SIM115 - closed when they were read
                for _ in range(PARTS)
            ]
        if not self._waiting:
            return
        rows = np.concatenate(self._waiting)
        part = ((rows["group"] * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(59)).astype(np.int64)
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(PARTS + 1))
        rows = rows[order]
        for file, start, end in zip(self._files, ends[:-1], ends[1:], strict=True):
            file.write(rows[start:end].tobytes())
        self._waiting, self._count = [], 0


class Closed:
    """The groups that were judged and may not come again, 8 bytes each, in sorted runs that are merged as they grow."""

    def __init__(self) -> None:
        self._runs: list[U64] = []

    def add(self, groups: U64) -> None:
        """Remember these groups as judged."""
        run = np.sort(groups)
        while self._runs and len(self._runs[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]))
        self._runs.append(run)

    def contains(self, groups: U64) -> npt.NDArray[np.bool_]:
        """Tell which of these groups were judged before."""
        found = np.zeros(len(groups), dtype=np.bool_)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, groups), len(run) - 1)
            found |= run[place] == groups
        return found


def whole_groups(rows: Rows, repeats: bool) -> npt.NDArray[np.bool_]:
    """Tell which sorted rows belong to a complete group: one with as many rows, or different rows, as it declares."""
    _, first, number = np.unique(rows["group"], return_index=True, return_counts=True)
    new = np.ones(len(rows), dtype=np.int64)
    if repeats:
        new[1:] = (rows["row"][1:] != rows["row"][:-1]) | (rows["group"][1:] != rows["group"][:-1])
    complete = np.add.reduceat(new, first) >= np.maximum.reduceat(rows["size"], first)
    return np.repeat(complete, number)


def _sorted(rows: Rows) -> Rows:
    return np.asarray(rows[np.lexsort((rows["row"], rows["group"]))])
