"""The contract of a stream algorithm: it chooses groups; the engine keeps the deadlines and the gate the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from stream_anon.core.gate import Group, Reason
from stream_anon.core.hierarchy import Ints


class Chosen(NamedTuple):
    """The groups chosen to leave: their slots, in parts that may hold several groups, and their sizes and reasons."""

    slots: list[Ints]
    sizes: list[int]
    reasons: list[Reason]

    def add(self, others: Chosen) -> None:
        """Append the groups of another selection to this one."""
        for own, more in zip(self, others, strict=True):
            own += more  # type: ignore[operator]


class Algorithm(Protocol):
    """A choice of which rows leave together. It sees slots of a buffer; a group is an array of slots.

    The engine calls `arrive` for new rows, `complete` for a row that is due, and `leave` for rows that leave, whoever
    decided it. A group must satisfy the policy; the gate checks. Sensitive values may veto a group, never choose its
    rows: whatever they decide can be replayed by somebody who knows the quasi-identifiers (`core/judging/veto.py`).
    """

    def arrive(self, slots: Ints) -> tuple[int, Ints | None]:
        """Admit staged rows in order until a group is ready; return how many were admitted, and that group."""
        ...

    def complete(self, slot: int) -> list[Ints] | Group:
        """Return groups of waiting rows so that the row in `slot` can leave; it is in none of them if it cannot.

        A `Group` is that one row alone, added to a group that has left.
        """
        ...

    def window(self, since: int) -> float:
        """Return the share of the delay bound that a row with `since` later arrivals may use: 1 for all of it."""
        return 1.0

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in; none unless the algorithm keeps some."""
        return 0

    def arrive_batch(self, slots: Ints, most: int) -> tuple[int, list[Ints]] | None:
        """Admit staged rows, no more than `most`: none that waits is due before those are in.

        Returns how many were admitted, at least one, and the groups that are ready; None if the algorithm has no faster
        way than `arrive`.
        """
        return None

    def ahead(self, used: Callable[[int, float], float]) -> Iterable[list[Ints]]:
        """Yield groups that leave early, so that not too much is due at once; asked for after every arrival.

        They leave before the next ones are looked for, which the engine may do without. `used` tells which share of the
        bound a row has used, by its serial number and its arrival.
        """
        return ()

    def clear(self) -> list[Ints]:
        """Group as much as possible of what waits, as if all of it were due; the engine completes what is left."""
        return []

    def leave(self, slots: Ints) -> None:
        """Forget these rows: they have been chosen or given up."""
        ...
