"""The anonymizing core as the worker uses it: records become rows, rows become groups, groups become bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoded
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.stream import Outcome


class Engine(Protocol):
    """A stream algorithm; time is an argument of its methods."""

    def push(self, rows: Batch, now: float, /) -> Outcome:
        """Take rows, which carry their own arrival times."""

    def tick(self, now: float, /) -> Outcome:
        """Release the rows that are due."""

    def flush(self) -> Outcome:
        """Release all rows that wait."""

    def next_deadline(self) -> float | None:
        """Return when `tick` has to be called next."""

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in."""

    def remove(self, ref: Ints, /) -> Batch:
        """Remove rows without publishing them; ignore those that are not inside."""


class Core(Protocol):
    """The anonymizing core under one policy."""

    @property
    def fingerprint(self) -> bytes:
        """What changes with anything that could change a published byte."""

    @property
    def key(self) -> bytes:
        """The secret that ledgers are sealed with."""

    def encode(self, values: Sequence[bytes | None], ref: Ints, arrived: Floats) -> Encoded:
        """Decode and slice records that were read at `ref` (n, 2) and received at `arrived` (n,)."""

    def engine(self) -> Engine:
        """Return a new engine, in which nothing waits."""

    def release(self, rows: Batch) -> Group:
        """Make one group of rows again; raise `PrivacyViolation` if they must not leave together."""

    def write(self, groups: Sequence[Group]) -> Iterable[list[bytes]]:
        """Write the records of each group: the same bytes for the same members, policy and secret."""

    def writable(self, rows: Batch) -> Sequence[bool]:
        """Tell of each row whether it can be written; asked when writing failed."""
