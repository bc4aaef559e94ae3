"""The state of one owned partition: what was read, what waits, what is announced; never talks to a broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stream_anon.kafka.transport import Committed, Outgoing
from stream_anon.worker.groups import Floats, Formed
from stream_anon.worker.ledger.ledger import NOTHING, Ledger, Offsets, contains, without

NO_TIMES: Floats = np.empty(0)
PER_ROW = 2.2  # characters an announced row takes in its home's text, roughly: to choose homes and to pause in time
PER_OFFSET = 1.25 / 8  # characters an offset takes at most: one bit, in base 85
OVERHEAD = 120.0  # characters of everything else: where it belongs, sequence, digest, nonce and tag


@dataclass(slots=True, eq=False)
class Partition:
    """The state of a partition between transactions.

    `ledger` and `text` are as committed, `text` None before the first commit. `position` is the next offset to read;
    `waiting` are the offsets read and not finished, `born` their records' own times. `announced` have their home here.
    `letters` are dead letters whose offsets are finished by the transaction that sends them.
    """

    ledger: Ledger
    text: Committed | None
    position: int
    waiting: Offsets = field(default_factory=lambda: NOTHING)
    announced: list[Formed] = field(default_factory=list)
    letters: list[Outgoing] = field(default_factory=list)
    born: Floats = field(default_factory=lambda: NO_TIMES)
    paused_since: float | None = None
    target: int = 0

    def __post_init__(self) -> None:
        self.target = self.ledger.position

    @property
    def caught_up(self) -> bool:
        """Whether everything the predecessor had read was read again. Nothing may be suppressed before."""
        return self.position >= self.target

    @property
    def window(self) -> float:
        """The number of characters that the offsets may come to take without another being read.

        Finishing some of many that wait turns a text that compresses well into one that does not. What was not read
        again yet is still in the text.
        """
        length = 0 if self.text is None else len(self.text.metadata)
        now = max(OVERHEAD, length - PER_ROW * rows_of(self.announced)) + len(self.waiting) * PER_OFFSET
        if not self.caught_up:
            return now
        if not len(self.waiting):
            return OVERHEAD
        plain = OVERHEAD + (self.position - int(self.waiting[0])) * PER_OFFSET
        return plain if self.text is None else min(plain, now)

    def read(self, offsets: Sequence[int], stamps: Sequence[float], position: int) -> npt.NDArray[np.bool_]:
        """Record what a poll brought, and return which of it has to be processed."""
        found = np.asarray(offsets, dtype=np.int64)
        keep = self.ledger.unfinished(found) & (found >= self.position)
        self.waiting = np.concatenate([self.waiting, found[keep]])
        self.born = np.concatenate([self.born, np.asarray(stamps, dtype=np.float64)[keep]])
        self.move(position)
        return keep

    def move(self, position: int) -> None:
        """Move on: everything below was read or will never be delivered (markers, compaction, retention)."""
        self.position = max(self.position, position)

    def finish(self, offsets: Offsets) -> None:
        """Mark rows as finished that will not be published: rejected or suppressed."""
        if len(offsets):
            stays = ~contains(np.sort(offsets), self.waiting)
            self.waiting, self.born = self.waiting[stays], self.born[stays]

    def born_at(self, offsets: Offsets) -> Floats:
        """Return the own times of waiting records."""
        return np.asarray(self.born[np.searchsorted(self.waiting, offsets)])

    def following(
        self, finished: Offsets, announced: Sequence[Formed], *, fingerprint: bytes, known: int, writer: int
    ) -> Ledger:
        """Return the next ledger: what is not finished, or not read again yet, still waits."""
        behind = self.ledger.waiting[self.ledger.waiting >= self.position]
        return self.ledger.following(
            self.position,
            np.concatenate([without(self.waiting, finished), behind]),
            tuple(group.members for group in announced),
            sum(group.digest for group in announced) % 2**64,
            fingerprint=fingerprint,
            known=known,
            writer=writer,
        )

    def unchanged(self, following: Ledger) -> bool:
        """Tell whether committing `following` would change nothing."""
        old = self.ledger
        same = old.position == following.position and old.known == following.known
        return (
            self.text is not None
            and same
            and not old.announced
            and not following.announced
            and not self.letters
            and len(old.waiting) == len(following.waiting)
        )

    def shrunk(self, *, fingerprint: bytes, known: int, writer: int) -> Ledger:
        """Return the committed ledger with its groups published and nothing else: never longer than before."""
        old = self.ledger
        return old.following(old.position, old.waiting, (), 0, fingerprint=fingerprint, known=known, writer=writer)

    def committed(self, ledger: Ledger, text: Committed, finished: Offsets, announced: list[Formed]) -> None:
        """Record that a transaction with this ledger is durable."""
        self.ledger, self.text = ledger, text
        self.finish(finished)
        self.announced = announced


def rows_of(groups: Sequence[Formed]) -> int:
    """Return the number of rows in all groups together."""
    return sum([len(group.members) for group in groups])
