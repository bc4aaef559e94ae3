"""The engines in which rows wait: one for all partitions of a worker, or one for each; decides nothing about groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stream_anon.worker.groups import Engine, Ints


class Engines:
    """Engines by partition (`apart`), or a single one that sees every row and so finds closer groups."""

    def __init__(self, make: Callable[[], Engine], *, apart: bool) -> None:
        self._make, self._apart = make, apart
        self._engines: dict[int, Engine] = {}

    def push(self, rows: Any, now: float) -> Iterator[tuple[Any, Any]]:
        """Push rows to their engines; yield an outcome per engine, and the rows it had no room for."""
        if not len(rows):
            return
        core = [(0, rows)]
        if self._apart:
            core = [(p, rows.take(rows.ref[:, 0] == p)) for p in np.unique(rows.ref[:, 0]).tolist()]
        for partition, part in core:
            outcome = self._of(partition).push(part, now)
            yield outcome, part.take(slice(len(part) - outcome.rest, None))

    def tick(self, now: float) -> Iterator[Any]:
        """Release the rows that are due."""
        for engine in self._engines.values():
            yield engine.tick(now)

    def flush(self) -> Iterator[Any]:
        """Release all rows that wait."""
        for engine in self._engines.values():
            yield engine.flush()

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

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in; none if the algorithm forms a group only when it leaves."""
        return sum(engine.open_clusters for engine in self._engines.values())

    def _of(self, partition: int) -> Engine:
        if partition not in self._engines:
            self._engines[partition] = self._make()
        return self._engines[partition]
