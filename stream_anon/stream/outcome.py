"""The contract of a stream engine: rows go in, groups come out, time is an argument. No clock, no input, no output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Ints


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: groups to publish, and the rows suppressed because no group could hold them.

    `rest` is how many rows at the end of a pushed batch were not taken because the buffer is full: pause the source,
    and push them again once something has left. `crowded_out` are those of the groups that had to leave because of the
    number of later arrivals, not of the clock.
    """

    groups: list[Group] = field(default_factory=list)
    suppressed: Batch | None = None
    rest: int = 0
    crowded_out: list[Group] = field(default_factory=list)


def always() -> bool:
    """Set no limit to how long a call may take."""
    return True


class StreamEngine(Protocol):
    """An engine. Every row leaves exactly once: in a group, suppressed, or by `remove`.

    `now` never runs backwards. A row is due when it is older than the policy's bound, by the clock or by the number of
    rows that arrived after it; no call returns while a due row is inside, unless the policy holds such rows back, or
    `more` says that the call has taken long enough: then `next_deadline` is past, and `tick` goes on where it stopped.
    """

    def push(self, batch: Batch, now: float, more: Callable[[], bool] = always) -> Outcome:
        """Take rows in the order of their arrival. Rows handed back keep the age and the number they had."""
        ...

    def tick(self, now: float, closing: bool = False, more: Callable[[], bool] = always) -> Outcome:
        """Let time pass without arrivals; `closing` if none will follow, so that no row is left behind alone."""
        ...

    def flush(self, more: Callable[[], bool] = always) -> Outcome:
        """Treat every row as due, while `more` says so.

        One without a group of its own joins one that leaves in the same call, if any can.
        """
        ...

    def next_deadline(self) -> float | None:
        """Return when `tick` must be called at the latest; None if nothing waits for the clock."""
        ...

    def remove(self, ref: Ints) -> Batch:
        """Remove the rows with these refs (n, 2) without publishing them; ignore refs that are not inside."""
        ...

    def __len__(self) -> int:
        """Return the number of rows inside."""
        ...


EMPTY_REFS = np.empty((0, 2), dtype=np.int64)
