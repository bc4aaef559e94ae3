"""The engines in which rows wait: one for all partitions of a worker, or one for each; decides nothing about groups."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.stream import Outcome
from stream_anon.stream.outcome import always
from stream_anon.worker.core import Engine


class Engines:
    """Engines by partition (`apart`), or a single one that sees every row and so finds closer groups."""

    def __init__(self, make: Callable[[], Engine], *, apart: bool) -> None:
        self._make, self._apart = make, apart
        self._engines: dict[int, Engine] = {}

    def push(self, rows: Batch, now: float, more: Callable[[], bool] = always) -> list[tuple[Outcome, Batch]]:
        """Push rows to their engines; return an outcome per engine, and the rows it had no room for."""
        parts = [(0, rows)] if len(rows) else []
        if self._apart:
            parts = [(p, rows.take(rows.ref[:, 0] == p)) for p in np.unique(rows.ref[:, 0]).tolist()]
        found = []
        for number, part in parts:
            if number not in self._engines:
                self._engines[number] = self._make()
            outcome = self._engines[number].push(part, now, more=more)
            found.append((outcome, part.take(slice(len(part) - outcome.rest, None))))
        return found

    def tick(self, now: float, more: Callable[[], bool] = always) -> list[Outcome]:
        """Release the rows that are due, while `more` says so; the engine that is most behind comes first."""
        return [engine.tick(now, more=more) for engine in sorted(self._engines.values(), key=_deadline)]

    def flush(self, more: Callable[[], bool] = always) -> list[Outcome]:
        """Release all rows that wait, while `more` says so."""
        return [engine.flush(more=more) for engine in self._engines.values()]

    def remove(self, partition: int, ref: Ints) -> None:
        """Forget rows of a partition that is no longer ours."""
        if self._apart:
            self._engines.pop(partition, None)
        elif 0 in self._engines and len(ref):
            self._engines[0].remove(ref)

    def next_deadline(self) -> float | None:
        """Return when the next tick is due."""
        due = [d for d in (engine.next_deadline() for engine in self._engines.values()) if d is not None]
        return min(due, default=None)

    def __len__(self) -> int:
        return sum(map(len, self._engines.values()))

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in; none if the algorithm forms a group only when it leaves."""
        return sum(engine.open_clusters for engine in self._engines.values())


def _deadline(engine: Engine) -> float:
    """Return when an engine has to be ticked, never if nothing waits for the clock."""
    deadline = engine.next_deadline()
    return inf if deadline is None else deadline
