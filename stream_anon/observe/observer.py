"""What a worker tells while it runs, as an observer whose methods do nothing; each is called once per batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Observer:
    """Override what is of interest. No method is ever given a value of a record."""

    def consumed(self, records: int) -> None:
        """Records were read that still had to be worked on."""

    def rejected(self, code: str, records: int) -> None:
        """Records could not be used."""

    def suppressed(self, reason: str, records: int) -> None:
        """Rows will never be published: no group in time, or a partition's ledger was full."""

    def published(
        self, reasons: Sequence[str], sizes: Sequence[int], delays: Floats, ages: Floats, losses: Floats
    ) -> None:
        """Groups became visible: of each row the seconds since receipt and since the record's own time, as far as
        known, and of each group what each of its quasi-identifiers lost (groups, columns).
        """

    def raised(self, attribute: str, records: int) -> None:
        """Sensitive values became visible as one of their ancestors, for the sake of a guarding node."""

    def withdrawn(self, reason: str, groups: int, records: int) -> None:
        """Announced groups could not be published identically and never will be."""

    def missed(self, records: int) -> None:
        """Rows left later than the delay bound allows."""

    def violated(self) -> None:
        """A group was stopped at the gate; the worker ends."""

    def transaction(self, result: str, seconds: float) -> None:
        """A transaction ended: committed, aborted, or unknown until the ledgers told."""

    def stage(self, stage: str, seconds: float) -> None:
        """A named step of the loop took this long."""

    def ledger(self, partition: int, characters: int) -> None:
        """The text committed with a partition's offset."""

    def lag(self, partition: int, records: int) -> None:
        """Records of a partition not read yet."""

    def buffered(self, rows: int, oldest: float, clusters: int) -> None:
        """Rows that wait, the age of the oldest in seconds, and the clusters of algorithms that keep some."""

    def assigned(self, partitions: int, quarantined: dict[int, str]) -> None:
        """What this worker owns, and what it refuses to touch and why."""

    def left(self, partition: int) -> None:
        """A partition is no longer ours."""

    def alive(self) -> None:
        """The loop went round."""


class Observers(Observer):
    """Passes everything on to several observers, in their order."""

    def __init__(self, *observers: Observer) -> None:
        for name, method in vars(Observer).items():
            if callable(method) and not name.startswith("_"):
                setattr(self, name, _each([getattr(observer, name) for observer in observers]))


def _each(methods: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        for method in methods:
            method(*arguments)

    return call
