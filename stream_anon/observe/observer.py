"""The observer of a worker: one method per event, called once per batch; by default they do nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Observer:
    """The base class of observers: override the events of interest. No method is ever given a value of a record."""

    def consumed(self, records: int) -> None:
        """Handle records that were read for the first time."""

    def rejected(self, code: str, records: int) -> None:
        """Handle records that could not be used."""

    def suppressed(self, reason: str, records: int) -> None:
        """Handle rows that will never be published: no group in time, or a partition's ledger was full."""

    def published(
        self, reasons: Sequence[str], sizes: Sequence[int], delays: Floats, ages: Floats, losses: Floats
    ) -> None:
        """Handle groups that became visible.

        Given are, of each row, the seconds since receipt and since the record's own time as far as known, and of each
        group what each of its quasi-identifiers lost (groups, columns).
        """

    def raised(self, attribute: str, records: int) -> None:
        """Handle sensitive values that were published as an ancestor because of a guarding node."""

    def withdrawn(self, reason: str, groups: int, records: int) -> None:
        """Handle announced groups that could not be published identically and never will be."""

    def missed(self, records: int) -> None:
        """Handle rows that left later than the delay bound allows."""

    def violated(self) -> None:
        """Handle a group that was stopped at the gate; the worker ends."""

    def transaction(self, result: str, seconds: float) -> None:
        """Handle the end of a transaction: committed, aborted, or unknown until the ledgers are read."""

    def stage(self, stage: str, seconds: float) -> None:
        """Handle a named step of the loop that took this long."""

    def ledger(self, partition: int, beside: int, whole: int) -> None:
        """Handle the size of the text committed beside a partition's offset, and that of the whole ledger."""

    def lag(self, partition: int, records: int) -> None:
        """Handle the number of records of a partition not read yet."""

    def buffered(self, rows: int, oldest: float, clusters: int) -> None:
        """Handle the number of waiting rows, the age of the oldest in seconds, and the number of open clusters."""

    def assigned(self, partitions: int, quarantined: dict[int, str]) -> None:
        """Handle the partitions this worker owns, and those it has quarantined, with the reasons."""

    def left(self, partition: int) -> None:
        """Handle a partition that this worker no longer owns."""

    def alive(self) -> None:
        """Handle the end of a round of the loop."""


class Observers(Observer):
    """An observer that passes everything on to several others, in their order."""

    def __init__(self, *observers: Observer) -> None:
        for name, method in vars(Observer).items():
            if callable(method) and not name.startswith("_"):
                setattr(self, name, _each([getattr(observer, name) for observer in observers]))


def _each(methods: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        for method in methods:
            method(*arguments)

    return call
