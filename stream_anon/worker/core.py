"""The anonymizing core as the worker uses it: records become rows, rows become groups, groups become bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoded
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.stream import Outcome
from stream_anon.stream.outcome import always


class Engine(Protocol):
    """A stream algorithm; time is an argument of its methods."""

    def push(self, rows: Batch, now: float, /, *, more: Callable[[], bool]) -> Outcome:
        """Take rows, which carry their own arrival times, and release those that are due while `more` says so."""

    def tick(self, now: float, /, *, more: Callable[[], bool]) -> Outcome:
        """Release the rows that are due, while `more` says so."""

    def flush(self, *, more: Callable[[], bool] = always) -> Outcome:
        """Release all rows that wait, while `more` says so."""

    def next_deadline(self) -> float | None:
        """Return when `tick` has to be called next."""

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in."""

    def remove(self, ref: Ints, /) -> Batch:
        """Remove rows without publishing them; ignore those that are not inside."""

    def __len__(self) -> int:
        """Return the number of rows inside."""


def _all_writable(rows: Batch) -> Sequence[bool]:
    return [True] * len(rows)


@dataclass(frozen=True, slots=True)
class Core:
    """The anonymizing core under one policy.

    `encode` decodes and slices records, given their refs (n, 2) and when they were received; `release` is the gate.
    `write` makes the records of groups: the same bytes for the same members, policy and secret. `fingerprint` changes
    with anything that could change a published byte; `key` is the secret ledgers are sealed with. `writable` says for
    each of some rows whether it can be written; it is called when writing failed. `learn`, where there is one, fetches
    what is needed to read records, and raises `AbortableError` while that cannot be had.
    """

    encode: Callable[[Sequence[bytes | None], Ints, Floats], Encoded]
    engine: Callable[[], Engine]
    release: Callable[[Batch], Group]
    write: Callable[[Sequence[Group]], Iterable[list[bytes]]]
    fingerprint: bytes
    key: bytes = field(repr=False)
    writable: Callable[[Batch], Sequence[bool]] = _all_writable
    learn: Callable[[Sequence[bytes | None]], None] | None = None
