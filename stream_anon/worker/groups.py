"""What the loop needs of the anonymizing core, as protocols: rows, groups, an engine, an encoder, the gate."""

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
        """Partition and offset."""

    @property
    def arrived(self) -> Floats:
        """When it was received."""

    def take(self, index: Any) -> Any:
        """The rows at `index`."""

    def __len__(self) -> int: ...


class Group(Protocol):
    """Rows that passed the gate together."""

    @property
    def id(self) -> str:
        """The same for the same members, policy and secret."""

    @property
    def rows(self) -> Rows:
        """The members in their published order."""

    @property
    def members(self) -> Members:
        """Where they came from, in ascending order."""

    @property
    def arrived(self) -> Floats:
        """When they were received."""

    def __len__(self) -> int: ...

    @property
    def reason(self) -> str:
        """Why it left now."""

    @property
    def losses(self) -> Any:
        """The share of information lost, per quasi-identifier."""

    @property
    def raised(self) -> Any:
        """What sensitive values were raised to, by attribute."""


class Outcome(Protocol):
    """What an engine lets go: groups, and rows for which there is no group."""

    @property
    def groups(self) -> Sequence[Any]:
        """Groups that passed the gate."""

    @property
    def suppressed(self) -> Any:
        """Rows that will not be published, or None."""

    @property
    def rest(self) -> int:
        """How many rows at the end of what was pushed were not taken."""


class Engine(Protocol):
    """A stream algorithm. Time is an argument."""

    def push(self, rows: Any, now: float) -> Any:
        """Take rows, which bring their own arrival times."""

    def tick(self, now: float) -> Any:
        """Let go what is due."""

    def flush(self) -> Any:
        """Let go everything."""

    def next_deadline(self) -> float | None:
        """When `tick` has to be called next."""

    @property
    def open_clusters(self) -> int:
        """Clusters that rows wait in."""

    def remove(self, ref: Ints) -> Any:
        """Take rows back out; those that are not inside are ignored."""


class Rejection(Protocol):
    """Why one record, by its place in the input, is no row."""

    @property
    def index(self) -> int:
        """Its place."""

    @property
    def code(self) -> str:
        """The kind of trouble."""

    @property
    def column(self) -> str | None:
        """The field, if one is to blame."""


class Encoded(Protocol):
    """Rows, and what could not become one."""

    @property
    def batch(self) -> Any:
        """The rows."""

    @property
    def rejections(self) -> Sequence[Any]:
        """The rest."""


def _all_writable(rows: Any) -> Sequence[bool]:
    return [True] * len(rows)


@dataclass(frozen=True, slots=True)
class Core:
    """The anonymizing core under one policy.

    `write` makes the records of groups: the same bytes for the same members, policy and secret. `fingerprint` changes
    with anything that could change a published byte; `key` is the secret ledgers are sealed with. `writable` tells for
    each of some rows whether it can be written; it is asked when writing failed.
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
