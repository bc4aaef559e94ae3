"""Plan a transaction before it begins: what it publishes, what it announces, and ledgers that are sure to fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream_anon.errors import PrivacyViolation
from stream_anon.kafka.transport import Committed, Outgoing, partition_of
from stream_anon.worker.group_life import Announced, Formed
from stream_anon.worker.ledger.budget import INLINE, LedgerBudget
from stream_anon.worker.ledger.codec import Codec
from stream_anon.worker.ledger.ledger import NO_MEMBERS, UNSEEN, Author, Place, Seen
from stream_anon.worker.ledger.mark import Mark, MarkSeal
from stream_anon.worker.state.partition import Draft, Partition


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The contents of one transaction: a draft for each partition it changes, and the groups it announces.

    `mark` goes with the first record that it sends into each of the output's `spread` partitions.
    """

    drafts: Mapping[int, Draft]
    announcing: Sequence[Formed]
    mark: bytes = b""
    spread: int = 1

    @property
    def texts(self) -> dict[Place, Committed]:
        """The texts of the ledgers to keep, by where they belong."""
        return {draft.ledger.place: draft.text for draft in self.drafts.values()}

    def records(self, topic: str) -> list[Outgoing]:
        """Return the records to send. Groups are ordered by their ids, which only the secret decides."""
        announced: list[Announced] = [group for draft in self.drafts.values() for group in draft.publishing]
        groups = sorted(announced, key=lambda group: group.id)
        letters = [letter for draft in self.drafts.values() for letter in draft.letters]
        marked: set[int] = set()
        records = []
        for group in groups:
            key = group.id.encode()
            first = partition_of(key, self.spread) not in marked
            marked.add(partition_of(key, self.spread))
            records.append(Outgoing(topic, key, group.records, self.mark if first else b""))
        return records + letters


@dataclass(frozen=True, slots=True)
class Planner:
    """A maker of plans. `writer` is the number of this process in the ledgers it writes."""

    codec: Codec
    seal: MarkSeal
    fingerprint: bytes
    writer: int
    budget: LedgerBudget = INLINE

    def plan(
        self, partitions: Mapping[int, Partition], formed: Sequence[Formed], known: int, seen: Seen = UNSEEN
    ) -> Plan:
        """Plan as many groups as the ledgers can hold; half as many whenever one would not fit.

        Those with the oldest rows come first: they are due, and they are what holds a ledger's lowest offset back.
        """
        formed = sorted(formed, key=lambda group: group.facts.oldest)
        windows = {number: partition.window for number, partition in partitions.items()}
        count = self.budget.fitting(list(map(len, formed)), list(windows.values()))
        author = Author(self.fingerprint, self.writer, known, seen)
        while True:
            chosen = formed[:count]
            drafts = self._drafts(partitions, windows, chosen, author)
            long = [number for number, draft in drafts.items() if not self.budget.fits(draft.text)]
            if not long:
                return self._marked(drafts, chosen, seen)
            if not count:
                break
            count //= 2
        for number in long:  # nothing new is recorded here: it would not fit
            del drafts[number]
            if (held := partitions[number].hold(author, self.codec)) is not None:
                drafts[number] = held
        return self._marked(drafts, (), seen)

    def _marked(self, drafts: Mapping[int, Draft], chosen: Sequence[Formed], seen: Seen) -> Plan:
        """Return a plan whose records say by which ledgers their rows were finished."""
        announced: Counter[int] = Counter()
        for draft in drafts.values():
            announced |= Counter(draft.parties)  # the higher number of each
        if not announced:
            return Plan(drafts, chosen)
        written = {number: draft.ledger.sequence for number, draft in drafts.items()}
        place = next(iter(drafts.values())).ledger.place
        return Plan(drafts, chosen, self.seal.seal(Mark(announced, written), place), max(1, len(seen.ends)))

    def _drafts(
        self,
        partitions: Mapping[int, Partition],
        windows: Mapping[int, float],
        chosen: Sequence[Formed],
        author: Author,
    ) -> dict[int, Draft]:
        """Return what the transaction does to each partition that changes.

        Groups are named where most room is left: any partition in the same transaction will do.
        """
        ended = np.concatenate([NO_MEMBERS, *(group.members for group in chosen)])
        if not np.isin(ended[:, 0], list(partitions)).all():
            raise PrivacyViolation("a group holds a record of a partition that is not owned")
        room = {number: self.budget.limit - window for number, window in windows.items()}
        homes: dict[int, list[Formed]] = {}
        for group in chosen:
            home = max(room, key=room.__getitem__)
            room[home] -= self.budget.per_row * len(group)
            homes.setdefault(home, []).append(group)
        sequences = {number: partition.ledger.sequence + 1 for number, partition in partitions.items()}
        drafts = {}
        for number, partition in partitions.items():
            finished = ended[ended[:, 0] == number, 1]
            draft = partition.draft(finished, homes.get(number, ()), author, self.codec, sequences)
            if draft is not None:
                drafts[number] = draft
        return drafts
