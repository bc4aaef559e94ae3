"""The state of one owned partition: what was read, what waits, what is announced; never talks to a broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy import Floats
from stream_anon.kafka.transport import Committed, Outgoing
from stream_anon.worker.group_life import Announced, Formed, Published, announce
from stream_anon.worker.ledger.budget import INLINE, LedgerBudget
from stream_anon.worker.ledger.codec import Codec, combined
from stream_anon.worker.ledger.ledger import NOTHING, Author, Ledger, Offsets, contains, without
from stream_anon.worker.ledger.packing import partitions_of
from stream_anon.worker.state.letters import without_payload

NO_TIMES: Floats = np.empty(0)
_FAR = 50_000  # offsets of the output after which a ledger that is otherwise the same says anew how far that has come


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """What one transaction does to one partition: its next ledger, the whole text of it, and what becomes visible.

    `finished` are the offsets of rows that leave in groups, `announcing` the groups that this ledger is the first to
    name, `publishing` those that the ledger before it named, and `parties` the sequence numbers under which their rows
    were finished.
    """

    ledger: Ledger
    text: Committed
    finished: Offsets
    announcing: Sequence[Formed]
    publishing: Sequence[Announced]
    letters: Sequence[Outgoing]
    parties: Mapping[int, int]


@dataclass(slots=True, eq=False)
class Partition:
    """The state of a partition between transactions; only its own methods change it.

    `ledger` is as kept, in a text of `size` characters; `text` is what is committed beside the offset, None before the
    first commit. `position` is the next offset to read; `waiting` are the offsets read and not finished, `born` their
    records' own times. `announced`, of `announced_rows`, have their home here. `letters` are dead letters whose offsets
    are finished by the transaction that sends them.
    """

    ledger: Ledger
    text: Committed | None
    position: int
    announced: list[Announced] = field(default_factory=list)
    budget: LedgerBudget = INLINE
    size: int = 0
    waiting: Offsets = field(default_factory=lambda: NOTHING, init=False)
    born: Floats = field(default_factory=lambda: NO_TIMES, init=False)
    letters: list[Outgoing] = field(default_factory=list, init=False)
    announced_rows: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.announced_rows = sum(map(len, self.announced))

    @property
    def caught_up(self) -> bool:
        """Whether everything the predecessor had read was read again. Nothing may be suppressed before."""
        return self.position >= self.ledger.position

    @property
    def window(self) -> float:
        """The number of characters that the offsets may come to take without another being read."""
        apart = self.position - int(self.waiting[0]) if len(self.waiting) else 0
        span = apart if self.caught_up else None
        return self.budget.window(self.size, self.announced_rows, len(self.waiting), span)

    def read(self, offsets: Offsets, stamps: Sequence[float], position: int) -> npt.NDArray[np.bool_]:
        """Record what a poll brought, and return which of it has to be processed."""
        keep = self.ledger.unfinished(offsets) & (offsets >= self.position)
        self.waiting = np.concatenate([self.waiting, offsets[keep]])
        self.born = np.concatenate([self.born, np.asarray(stamps, dtype=np.float64)[keep]])
        self.move(position)
        return keep

    def move(self, position: int) -> None:
        """Move on: everything below was read or will never be delivered (markers, compaction, retention)."""
        self.position = max(self.position, position)

    def finish(self, offsets: Offsets) -> None:
        """Mark rows as finished that will not wait any more: rejected, suppressed, or in a group that is durable."""
        if len(offsets):
            stays = ~contains(np.sort(offsets), self.waiting)
            self.waiting, self.born = self.waiting[stays], self.born[stays]

    def born_at(self, offsets: Offsets) -> Floats:
        """Return the own times of waiting records."""
        return np.asarray(self.born[np.searchsorted(self.waiting, offsets)])

    def report(self, letter: Outgoing) -> None:
        """Send a dead letter with the next transaction."""
        self.letters.append(letter)

    def shorten_letters(self, largest: int) -> None:
        """Keep no payload in a dead letter that would be larger."""
        self.letters = [
            without_payload(letter) if len(letter.values[0]) > largest else letter for letter in self.letters
        ]

    @property
    def parties(self) -> dict[int, int]:
        """The sequence numbers of the ledgers that announced what is published next: those of its rows, and ours."""
        return {**self.ledger.parties, self.ledger.place.partition: self.ledger.sequence} if self.announced else {}

    def draft(
        self,
        finished: Offsets,
        announcing: Sequence[Formed],
        author: Author,
        codec: Codec,
        sequences: Mapping[int, int] | None = None,
    ) -> Draft | None:
        """Return what the next transaction does here, or None if it would change nothing.

        What is not finished, or not read again yet, still waits. `sequences` are those of all ledgers it may write.
        """
        old = self.ledger
        behind = old.waiting[old.waiting >= self.position]
        waiting = np.concatenate([without(self.waiting, finished), behind])
        named = tuple([group.members for group in announcing])
        digest = combined(group.digest for group in announcing)
        parties = {party: (sequences or {})[party] for party in partitions_of(named)}
        ledger = old.following(self.position, waiting, named, digest, author, parties)
        same = author.seen.since(old.seen) < _FAR and (old.position, old.known, len(old.waiting)) == (
            ledger.position,
            ledger.known,
            len(waiting),
        )
        if same and self.text is not None and not (old.announced or announcing or self.letters):
            return None
        text = codec.encode(ledger)
        return Draft(ledger, text, finished, announcing, self.announced, list(self.letters), self.parties)

    def hold(self, author: Author, codec: Codec) -> Draft | None:
        """Return what publishes the announced groups and records nothing new: never longer than what is committed."""
        if not self.announced:
            return None
        author = author._replace(seen=self.ledger.seen)
        ledger = self.ledger.following(self.ledger.position, self.ledger.waiting, (), 0, author)
        return Draft(ledger, codec.encode(ledger), NOTHING, (), self.announced, (), self.parties)

    def commit(self, draft: Draft, text: Committed) -> list[Published]:
        """Record that a draft is durable, by this text; return the groups that became visible with it."""
        published = [group.publish() for group in draft.publishing]
        self.announced = announce(draft.announcing, draft.ledger)
        self.announced_rows = sum(map(len, draft.ledger.announced))
        self.ledger, self.text, self.size = draft.ledger, text, len(draft.text.metadata)
        self.finish(draft.finished)
        del self.letters[: len(draft.letters)]
        return published
