"""Chunks of published records: what many records share is held once, with each record's index into it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

ENVELOPE = "_anon"
FACTS: dict[str, Any] = {"policy": str, "group": str, "row": int, "size": int, "subjects": int | None, "loss": float}
"""The facts of the envelope of a record; people are null where the policy names no subject."""

COUNTS = ("row", "size", "subjects")
MOST = 2**31
"""No count of the envelope reaches this."""

AT_ONCE = 50_000
"""Records of a chunk: enough for columns to pay, little enough to forget."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Coded:
    """A dictionary-coded column of tuples: its entries, and which of them each record has."""

    entries: Sequence[tuple[Any, ...]]
    index: Ints

    @classmethod
    def of(cls, values: Sequence[tuple[Any, ...]]) -> Coded:
        """Return a column in which every record has an entry of its own."""
        return cls(values, np.arange(len(values)))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A batch of records. `own` holds the sensitive values, then those of insensitive fields if they were asked for.

    `times` are the timestamps of a topic's records in milliseconds, None for files. Everything is hashable.
    """

    labels: Coded
    own: Coded
    marks: Coded  # (policy, group)
    sums: Coded  # (size, subjects, loss)
    row: Ints
    times: Ints | None = None

    def __len__(self) -> int:
        return len(self.row)


def counts(numbers: Iterable[int | None]) -> bool:
    """Tell whether these are possible counts; None means that nothing was counted.

    >>> counts([0, None, 7]), counts([-1])
    (True, False)
    """
    given = [number or 0 for number in numbers]
    return 0 <= min(given, default=0) <= max(given, default=0) < MOST


def parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` items."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def hashable(value: Any) -> Any:
    """Return a value that can be a key: lists become tuples, objects their JSON text.

    >>> hashable([1, [2]]), hashable({"b": 1})
    ((1, (2,)), '{"b": 1}')
    """
    if isinstance(value, list | tuple):
        return tuple(hashable(item) for item in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


def tuples(columns: Sequence[Sequence[Any]], count: int) -> list[tuple[Any, ...]]:
    """Return the rows of some columns; empty tuples if there are no columns."""
    return list(zip(*columns, strict=True)) if columns else [()] * count
