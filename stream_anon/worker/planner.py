"""Plan a transaction before it begins: what it publishes, what it announces, and ledgers that are sure to fit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import attrgetter

import numpy as np

from stream_anon.errors import PrivacyViolation
from stream_anon.kafka.transport import Committed, Outgoing
from stream_anon.worker.groups import Formed
from stream_anon.worker.ledger.codec import LIMIT, Codec, fits
from stream_anon.worker.ledger.ledger import NO_MEMBERS, NOTHING, Ledger, Offsets
from stream_anon.worker.state.partition import PER_ROW, Partition


@dataclass(slots=True, eq=False)
class Plan:
    """The contents of one transaction.

    `publish` was announced before, `taken` is announced now, `texts` go with the offsets, and of each partition's dead
    letters the first `letters_sent` are sent.
    """

    publish: list[Formed] = field(default_factory=list)
    taken: list[Formed] = field(default_factory=list)
    letters: list[Outgoing] = field(default_factory=list)
    ledgers: dict[int, Ledger] = field(default_factory=dict)
    texts: dict[int, Committed] = field(default_factory=dict)
    finished: dict[int, Offsets] = field(default_factory=dict)
    homes: dict[int, list[Formed]] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)
    letters_sent: dict[int, int] = field(default_factory=dict)

    def records(self, topic: str) -> list[Outgoing]:
        """Return the records to send. Groups are ordered by their ids, which only the secret decides."""
        groups = sorted(self.publish, key=lambda group: group.id)
        return [Outgoing(topic, group.id.encode(), group.records) for group in groups] + self.letters


def _fitting(groups: Sequence[Formed], room: float) -> int:
    """Estimate how many of the groups may fit; at least one is tried."""
    most = int(room / PER_ROW)
    return bisect_right(list(accumulate([len(group.members) for group in groups])), most) or min(1, len(groups))


@dataclass(frozen=True, slots=True)
class Planner:
    """A maker of plans.

    With `announce` off a group is published by the transaction that first names it: for tests only, to show that they
    notice.
    """

    codec: Codec
    fingerprint: bytes
    writer: int
    announce: bool = True

    def plan(self, partitions: Mapping[int, Partition], formed: Sequence[Formed], known: int) -> Plan:
        """Plan as many groups as the ledgers can hold; half as many whenever one would not fit.

        Those with the oldest rows come first: they are due, and they are what holds a ledger's lowest offset back.
        """
        formed = sorted(formed, key=attrgetter("oldest"))
        count = _fitting(formed, sum(max(0.0, LIMIT - partition.window) for partition in partitions.values()))
        while True:
            plan = self._try(partitions, formed[:count], known)
            long = [p for p, text in plan.texts.items() if not fits(text)]
            if not long:
                return plan
            if count:
                count //= 2
                continue
            return self._hold(plan, partitions, long, known)

    def _try(self, partitions: Mapping[int, Partition], chosen: Sequence[Formed], known: int) -> Plan:
        plan = Plan(taken=list(chosen))
        room = {n: LIMIT - p.window for n, p in partitions.items()}
        ended = np.concatenate([NO_MEMBERS, *(group.members for group in chosen)])
        if not np.isin(ended[:, 0], list(partitions)).all():
            raise PrivacyViolation("a group holds a record of a partition that is not owned")
        for group in chosen:
            home = max(room, key=room.__getitem__)  # any partition in this transaction will do
            room[home] -= PER_ROW * len(group.members)
            plan.homes.setdefault(home, []).append(group)
        for number, partition in partitions.items():
            finished = ended[ended[:, 0] == number, 1]
            homed = plan.homes.get(number, []) if self.announce else []
            ledger = partition.following(finished, homed, fingerprint=self.fingerprint, known=known, writer=self.writer)
            if partition.unchanged(ledger):
                continue
            plan.publish += partition.announced
            plan.letters += partition.letters
            plan.letters_sent[number] = len(partition.letters)
            plan.finished[number] = finished
            plan.ledgers[number] = ledger
            plan.texts[number] = self.codec.encode(ledger)
        if not self.announce:
            plan.publish += plan.taken
            plan.homes = {}
        return plan

    def _hold(self, plan: Plan, partitions: Mapping[int, Partition], long: list[int], known: int) -> Plan:
        """Publish what these partitions announced and record nothing new: their ledgers would not fit otherwise."""
        for number in long:
            partition = partitions[number]
            plan.held.add(number)
            if not partition.announced:
                del plan.ledgers[number], plan.texts[number], plan.finished[number]
                continue
            ledger = partition.shrunk(fingerprint=self.fingerprint, known=known, writer=self.writer)
            plan.ledgers[number], plan.texts[number] = ledger, self.codec.encode(ledger)
            plan.finished[number] = NOTHING
        plan.letters = [x for n, p in partitions.items() if n not in plan.held for x in p.letters]
        return plan
