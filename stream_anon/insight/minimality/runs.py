"""Run an algorithm on rows, and parts of it again with other sensitive values: what who knows the program can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

import numpy as np

from stream_anon.batch import partition
from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.schema import Schema
from stream_anon.stream import build

GRAINS = 20
"""Parts of the bound: rows of one part arrive together, and to one part it is known when a group leaves."""

Replay = Callable[[Batch], bool]
"""A question: would the group be published, if these were the rows?"""


class Published(NamedTuple):
    """A group by the numbers of its rows, and the row that had arrived last when it left."""

    members: Ints
    left: int


class Run(Protocol):
    """An algorithm that was run on rows; `grain` is how many of them arrive together."""

    groups: list[Published]
    suppressed: Ints
    grain: int

    def replays(self, chosen: Sequence[int]) -> Iterator[tuple[int, Replay]]:
        """Yield the numbers of the chosen groups, each with the question that replays how it was made."""
        ...


def numbered(rows: Batch, rate: float = 1.0) -> Batch:
    """Return a copy of the rows that is known by their numbers and arrives at `rate` rows a second."""
    copy = rows.take(np.arange(len(rows)))
    copy.ref[:, 0], copy.ref[:, 1] = 0, np.arange(len(rows))
    copy.arrived[:] = np.arange(len(rows)) / rate
    return copy


class StreamRun:
    """A run of the policy's stream algorithm; a replay starts just before the group's first row arrived."""

    def __init__(self, schema: Schema, rows: Batch, rate: float = 1.0) -> None:
        delay = schema.policy.stream.max_delay
        bound = min(delay.records or np.inf, (delay.time or np.inf) * rate)
        self.grain = max(1, int(min(bound, len(rows))) // GRAINS)
        self._schema, self._rows = schema, rows
        self.groups: list[Published] = []
        lost = [np.empty(0, dtype=np.int64)]
        engine = build(schema)
        for first in range(0, len(rows) + self.grain, self.grain):
            outcome = self._step(engine, rows, first)
            left = min(first + self.grain, len(rows)) - 1
            self.groups += [Published(np.sort(group.members[:, 1]), left) for group in outcome.groups]
            lost += [outcome.suppressed.ref[:, 1]] if outcome.suppressed is not None else []
        self.suppressed = np.concatenate(lost)

    def _step(self, engine: Any, rows: Batch, first: int) -> Any:
        """Let one grain of rows arrive; behind the last of them, the input ends."""
        if first >= len(rows):
            return engine.flush()
        part = rows.take(slice(first, first + self.grain))
        return engine.push(part, float(part.arrived[-1]))

    def replays(self, chosen: Sequence[int]) -> Iterator[tuple[int, Replay]]:
        """Run once more, and stop wherever the first row of a chosen group is about to arrive."""
        starts: dict[int, list[int]] = {}
        for number in chosen:
            starts.setdefault(int(self.groups[number].members[0]) // self.grain * self.grain, []).append(number)
        engine = build(self._schema)
        for first in range(0, max(starts, default=-1) + 1, self.grain):
            for number in starts.get(first, ()):
                yield number, self._question(engine, first, self.groups[number])
            self._step(engine, self._rows, first)

    def _question(self, engine: Any, start: int, group: Published) -> Replay:
        def same(rows: Batch) -> bool:
            copy, wanted = deepcopy(engine), group.members
            for first in range(start, len(rows) + self.grain, self.grain):
                outcome = self._step(copy, rows, first)
                for made in outcome.groups:
                    members = np.sort(made.members[:, 1])
                    if np.isin(members, wanted).any():
                        return np.array_equal(members, wanted)
                if outcome.suppressed is not None and np.isin(outcome.suppressed.ref[:, 1], wanted).any():
                    return False
            return False

        return same


class BatchRun:
    """A run of a batch algorithm; a replay divides the whole table again."""

    grain = 1

    def __init__(
        self, schema: Schema, rows: Batch, algorithm: str, options: Mapping[str, Any] | None = None, seed: int = 0
    ) -> None:
        self._schema, self._algorithm, self._options, self._seed = schema, algorithm, options, seed
        classes, self.suppressed = self._divide(rows)
        self.groups = [Published(members, len(rows) - 1) for members in classes]

    def _divide(self, rows: Batch) -> tuple[list[Ints], Ints]:
        found = partition(self._algorithm, rows, deepcopy(self._schema), self._options, self._seed)
        return [np.sort(index) for index in found.classes], found.suppressed

    def replays(self, chosen: Sequence[int]) -> Iterator[tuple[int, Replay]]:
        """Yield the question for each chosen group."""
        for number in chosen:
            yield number, self._question(self.groups[number].members)

    def _question(self, wanted: Ints) -> Replay:
        def same(rows: Batch) -> bool:
            return any(np.array_equal(index, wanted) for index in self._divide(rows)[0])

        return same
