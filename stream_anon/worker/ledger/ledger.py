"""The state of one partition between two transactions: which offsets still wait, which groups are announced.

Pure values: it reads no topic, knows no clock, and says nothing of what a record holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]
Members = npt.NDArray[np.int64]
"""The records of one group (n, 2), partition and offset, in ascending order."""

NOTHING: Offsets = np.empty(0, dtype=np.int64)
NO_MEMBERS: Members = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Place:
    """The cluster, topic and partition a ledger belongs to, and the consumer group that works on it.

    A recreated topic has another id, and its offsets mean other records.
    """

    cluster_id: str
    topic_id: str
    partition: int
    group: str = ""


class Seen(NamedTuple):
    """How far the output had come, or less: a tag of the topic's id, and an end offset for each of its partitions."""

    topic: bytes = bytes(4)
    ends: tuple[int, ...] = ()

    @classmethod
    def of(cls, topic_id: str, ends: Iterable[int]) -> Seen:
        """Return how far a topic has come."""
        return cls(hashlib.sha256(topic_id.encode()).digest()[:4], tuple(ends))

    def since(self, earlier: Seen) -> int:
        """Return how many offsets of the output came after `earlier`; of another topic, all."""
        return sum(self.ends) - (sum(earlier.ends) if earlier.topic == self.topic else 0)


UNSEEN = Seen()
"""What is known of an output that nobody looked at."""


class Author(NamedTuple):
    """Whoever writes a ledger: its policy, the number of the process, and how many partitions it knows to have one.

    `seen` is how far it knows the output to have come.
    """

    fingerprint: bytes
    writer: int
    known: int
    seen: Seen = UNSEEN


@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """The state of one partition as committed with its offset.

    Every offset below `position` is finished, read or not, unless it is in `waiting` (ascending). `announced` are the
    groups whose home is here and whose records are not known to be visible; `digest` is that of their bytes, under
    `fingerprint`. `known` is the number of partitions that are known to have had a ledger. `writer` and `sequence`
    distinguish two commits. `parties` are the partitions of the announced rows, each with the sequence number of the
    ledger in which these were finished, and `seen` is how far the output had come: a ledger that was put back
    contradicts what its siblings and the output tell.
    """

    place: Place
    fingerprint: bytes
    position: int = 0
    waiting: Offsets = field(default_factory=lambda: NOTHING)
    announced: tuple[Members, ...] = ()
    digest: int = 0
    known: int = 0
    writer: int = 0
    sequence: int = 0
    parties: Mapping[int, int] = field(default_factory=dict)
    seen: Seen = UNSEEN

    @property
    def low(self) -> int:
        """The lowest offset that is not finished: the offset that is committed."""
        return int(self.waiting[0]) if len(self.waiting) else self.position

    def finished(self, offset: int) -> bool:
        """Tell whether nobody has to read this offset again."""
        if offset >= self.position:
            return False
        at = int(np.searchsorted(self.waiting, offset))
        return at == len(self.waiting) or int(self.waiting[at]) != offset

    def unfinished(self, offsets: Offsets) -> npt.NDArray[np.bool_]:
        """Tell which of `offsets` still have to be worked on."""
        return (offsets >= self.position) | contains(self.waiting, offsets)

    def following(
        self,
        position: int,
        waiting: Offsets,
        announced: tuple[Members, ...],
        digest: int,
        author: Author,
        parties: Mapping[int, int] | None = None,
    ) -> Ledger:
        """Return the ledger of the next transaction. A position never goes back."""
        return replace(
            self,
            position=max(position, self.position),
            waiting=waiting,
            announced=announced,
            digest=digest,
            fingerprint=author.fingerprint,
            known=max(author.known, self.known),
            writer=author.writer,
            sequence=self.sequence + 1,
            parties=parties or {},
            seen=author.seen,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        if self._rest() != other._rest() or not np.array_equal(self.waiting, other.waiting):
            return False
        return all(map(np.array_equal, self.announced, other.announced))

    def __hash__(self) -> int:
        return hash(self._rest())

    def _rest(self) -> tuple[object, ...]:
        return (
            self.place,
            self.fingerprint,
            self.position,
            len(self.announced),
            self.digest,
            self.known,
            self.writer,
            self.sequence,
            tuple(self.parties.items()),
            self.seen,
        )

    def __repr__(self) -> str:
        return (
            f"<Ledger of partition {self.place.partition}: sequence {self.sequence}, low {self.low}, "
            f"position {self.position}, {len(self.waiting)} waiting, {len(self.announced)} announced>"
        )


def contains(ascending: Offsets, offsets: Offsets) -> npt.NDArray[np.bool_]:
    """Tell which of `offsets` occur in `ascending`.

    >>> contains(np.array([2, 5]), np.array([1, 2, 5, 9])).tolist()
    [False, True, True, False]
    """
    if not len(ascending):
        return np.zeros(len(offsets), dtype=np.bool_)
    at = np.minimum(np.searchsorted(ascending, offsets), len(ascending) - 1)
    found: npt.NDArray[np.bool_] = ascending[at] == offsets
    return found


def without(ascending: Offsets, offsets: Offsets) -> Offsets:
    """Return `ascending` without `offsets`, which may come in any order.

    >>> without(np.array([2, 5, 7]), np.array([7, 1, 2])).tolist()
    [5]
    """
    if not len(offsets) or not len(ascending):
        return ascending
    return ascending[~contains(np.sort(offsets), ascending)]
