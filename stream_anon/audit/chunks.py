"""Published records on their way in: columns of plain values, whatever kind of file or topic they came from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

ENVELOPE = "_anon"
FACTS = ("policy", "group", "row", "size", "subjects", "loss")
"""What the envelope tells of a record, and nothing else."""

AT_ONCE = 50_000
"""Records of a chunk: enough for columns to pay, little enough to forget."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some records, column by column. `facts` are those of the envelope; labels are hashable.

    `times` are the timestamps of a topic's records in milliseconds, None for files.
    """

    facts: dict[str, Sequence[Any]]
    columns: dict[str, Sequence[Any]]
    times: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.facts["group"])


def parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most `size` items."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def hashable(value: Any) -> Any:
    """A value that can be a key: lists become tuples, objects their JSON text.

    >>> hashable([1, [2]]), hashable({"b": 1})
    ((1, (2,)), '{"b": 1}')
    """
    if isinstance(value, list | tuple):
        return tuple(hashable(item) for item in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
