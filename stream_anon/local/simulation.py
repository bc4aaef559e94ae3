"""Run a stream algorithm on a simulated clock: the times of the rows decide what is due when. No input or output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats
from stream_anon.core.schema import Schema
from stream_anon.local.pipeline import Pipeline

GRAINS = 20
"""Parts of the bound: to one of them the moment at which a group leaves is known."""

AT_ONCE = 100_000


class Simulation:
    """A run that takes rows in order and releases groups at the moment they would leave; time never runs backwards.

    1. Up to the next deadline, push what arrives; at the deadline, tick.
    2. At the end, flush.
    """

    def __init__(self, schema: Schema, publish: Callable[[Sequence[Group]], None]) -> None:
        self.pipeline = Pipeline(schema)
        self._release = publish
        self._now = -math.inf
        self._most = max(1, (schema.policy.stream.max_delay.records or AT_ONCE) // GRAINS)

    def push(self, rows: Batch, when: Floats) -> None:
        """Add rows that happened at these times; a late one counts as simultaneous with the one before it."""
        if not len(rows):
            return
        clock = np.maximum(np.maximum.accumulate(when), self._now)
        rows.arrived[:] = clock
        start, bound = 0, self.pipeline.bound
        while start < len(rows):
            wait = self.pipeline.wait(self._now) if math.isfinite(self._now) else None
            due = math.inf if wait is None else self._now + wait
            if due <= clock[start]:
                self._now = max(self._now, due)
                released = self.pipeline.tick(self._now)
                self._publish(released)
                if released or self.pipeline.wait(self._now) != 0.0:
                    continue
            # Rows arrive together up to the next deadline, at most a grain: what they release leaves after them.
            until = min(due, clock[start] + bound / GRAINS) if bound is not None else due
            stop = max(start + 1, min(int(np.searchsorted(clock, until)), start + self._most))
            self._now = float(clock[stop - 1])
            self._publish(self.pipeline.push(rows.take(slice(start, stop)), self._now))
            start = stop

    def finish(self) -> None:
        """End the input: everything left is due."""
        if math.isfinite(self._now):
            for groups in self.pipeline.finish(self._now):
                self._publish(groups)

    def _publish(self, groups: Sequence[Group]) -> None:
        if groups:
            self._release(groups)
            self.pipeline.published(groups, self._now)
