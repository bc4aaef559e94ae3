"""Protocols of what the loop needs of the anonymizing core: rows, groups, an engine, an encoder, the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from stream_anon.worker.ledger.ledger import Members

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Rows(Protocol):
    """Encoded rows. `ref` (n, 2) is where each came from, `arrived` (n,) when, on the worker's monotonic clock."""

    @property
    def ref(self) -> Ints:
        """The partition and offset of each row."""

    @property
    def arrived(self) -> Floats:
        """The time each row was received."""

    def take(self, index: Any) -> Any:
        """Return the rows at `index`."""

    def __len__(self) -> int: ...


class Group(Protocol):
    """A group of rows that passed the gate together."""

    @property
    def id(self) -> str:
        """The id, which is the same for the same members, policy and secret."""

    @property
    def rows(self) -> Rows:
        """The members in their published order."""

    @property
    def members(self) -> Members:
        """The refs of the members, in ascending order."""

    @property
    def arrived(self) -> Floats:
        """The time each member was received."""

    def __len__(self) -> int: ...

    @property
    def reason(self) -> str:
        """The reason why it left."""

    @property
    def losses(self) -> Any:
        """The share of information lost, per quasi-identifier."""

    @property
    def raised(self) -> Any:
        """The nodes that sensitive values were raised to, by attribute."""


class Outcome(Protocol):
    """The result of an engine's call: groups, and rows for which there is no group."""

    @property
    def groups(self) -> Sequence[Any]:
        """The groups that passed the gate."""

    @property
    def suppressed(self) -> Any:
        """The rows that will not be published, or None."""

    @property
    def rest(self) -> int:
        """The number of rows at the end of what was pushed that were not taken."""


class Engine(Protocol):
    """A stream algorithm; time is an argument of its methods."""

    def push(self, rows: Any, now: float) -> Any:
        """Take rows, which carry their own arrival times."""

    def tick(self, now: float) -> Any:
        """Release the rows that are due."""

    def flush(self) -> Any:
        """Release all rows that wait."""

    def next_deadline(self) -> float | None:
        """Return when `tick` has to be called next."""

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in."""

    def remove(self, ref: Ints) -> Any:
        """Remove rows without publishing them; ignore those that are not inside."""


class Rejection(Protocol):
    """Why a record cannot become a row, by its place in the input."""

    @property
    def index(self) -> int:
        """Its place in the input."""

    @property
    def code(self) -> str:
        """The code of the reason."""

    @property
    def column(self) -> str | None:
        """The field at fault, if there is one."""


class Encoded(Protocol):
    """The rows of some records, and the records that could not become one."""

    @property
    def batch(self) -> Any:
        """The rows that were encoded."""

    @property
    def rejections(self) -> Sequence[Any]:
        """The records that were rejected."""


def _all_writable(rows: Any) -> Sequence[bool]:
    return [True] * len(rows)


@dataclass(frozen=True, slots=True)
class Core:
    """The anonymizing core under one policy.

    `write` makes the records of groups: the same bytes for the same members, policy and secret. `fingerprint` changes
    with anything that could change a published byte; `key` is the secret ledgers are sealed with. `writable` says for
    each of some rows whether it can be written; it is called when writing failed.
    """

    encode: Callable[[Sequence[bytes | None], Ints, Floats], Any]
    engine: Callable[[], Engine]
    release: Callable[[Any], Any]
    write: Callable[[Sequence[Any]], Iterable[list[bytes]]]
    fingerprint: bytes
    key: bytes
    writable: Callable[[Any], Sequence[bool]] = _all_writable

    def __repr__(self) -> str:
        return "<Parts>"


@dataclass(slots=True, eq=False)
class Formed:
    """A group with its bytes fixed: first formed, then announced, then published.

    `group` is let go once announced. `arrived` is when each row was received, `oldest` the first of these times; `born`
    are the records' own times. `raised` is how many sensitive values were published as an ancestor, by attribute.
    """

    id: str
    members: Members
    records: list[bytes]
    digest: int
    reason: str
    arrived: Floats
    oldest: float
    losses: Floats
    raised: dict[str, int]
    group: Any = None
    born: Floats | None = None

    def __repr__(self) -> str:
        return f"<Formed group of {len(self.members)} rows>"
