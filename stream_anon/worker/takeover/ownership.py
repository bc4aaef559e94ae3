"""Which partitions this worker owns, and since when that is certain; follows the group and restores new partitions."""

from __future__ import annotations

import logging
from contextlib import suppress

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import AbortableError, Committed, GroupNews, Membership, TopicFacts, Transport
from stream_anon.observe.observer import Observer
from stream_anon.worker.core import Core
from stream_anon.worker.group_life import Announced
from stream_anon.worker.ledger.ledger import Place
from stream_anon.worker.ledger.mark import MarkSeal, mark_room
from stream_anon.worker.ledger.store import LedgerStore
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.state.partition import Partition
from stream_anon.worker.state.state import WorkerState
from stream_anon.worker.takeover.renderer import WithdrawnError, members_of
from stream_anon.worker.takeover.restore import REMEDIES, Beginning, QuarantineError, Reader, Restorer
from stream_anon.worker.takeover.witness import Witness

_log = logging.getLogger("stream_anon.worker")
_LEARN_EVERY = 5.0  # seconds between questions whether every partition has a ledger by now
_REPORT_EVERY = 30.0  # seconds between words about partitions that wait for a predecessor's transaction to end
_STUCK = "ask stream-anon doctor"
_ANCHOR = 0
"""The partition whose owner writes a group's first ledger. Nobody else begins before: the group has one policy."""
_AROUND = 512  # bytes that a batch of one record takes beside it
_TRIES = 5  # questions for the ledgers before a worker joins; a new broker needs some seconds for the first answer


class Ownership:
    """The partitions of this worker, updated after every poll.

    `membership` is the last stable capture: while the group changes it still holds, and the broker refuses it from the
    moment the next generation begins. `quarantined` partitions are ours but not touched; they are judged again in
    the next generation. `known` is how many partitions are known to have a ledger.
    """

    def __init__(
        self,
        transport: Transport,
        state: WorkerState,
        core: Core,
        settings: WorkerSettings,
        observer: Observer,
        store: LedgerStore,
    ) -> None:
        self.membership: Membership | None = None
        self.quarantined: dict[int, str] = {}
        self.known = 0
        self._leaving = False
        self._generation: int | None = None
        self._unrestored: set[int] = set()
        self._early: set[int] = set()  # not begun because the group has no ledger yet, and the anchor is not ours
        self._learned = float("-inf")
        self._newest: dict[Place, int] = {}  # the highest sequence number seen in each partition's ledger
        self._stuck: float | None = None  # since when, or since the last word about it
        self._transport, self._state, self._core = transport, state, core
        self._settings, self._observer, self._store = settings, observer, store
        self.witness = Witness(transport, settings.output, MarkSeal.of(core.key))

    def leave(self) -> None:
        """Take nothing up from now on: what others leave behind is for the successors, too."""
        self._leaving = True

    def distrust(self) -> None:
        """Take the captured membership for over: the next stable capture decides anew."""
        self.membership = None

    @property
    def complete(self) -> bool:
        """Whether every assigned partition is restored and none is quarantined."""
        return self.membership is not None and not self._unrestored and not self.quarantined

    @property
    def lacking(self) -> str:
        """What keeps it from being complete, in words with a remedy; may be asked for by another thread."""
        quarantined, unrestored = dict(self.quarantined), list(self._unrestored)
        found = [f"partition {n} is quarantined as {code}: {REMEDIES[code]}" for n, code in sorted(quarantined.items())]
        if self.membership is None:
            found.append("the consumer group is changing, or was not joined yet")
        elif unrestored:
            found.append(f"partitions {sorted(unrestored)} wait for {self._waits_for}: {_STUCK}")
        return "\n".join(found)

    @property
    def owned(self) -> list[int]:
        """The partitions that are worked on; may be asked for by another thread."""
        return list(self._state.partitions)

    @property
    def unrestored(self) -> list[int]:
        """The partitions that are ours and not taken up yet; may be asked for by another thread."""
        return list(self._unrestored)

    @property
    def _waits_for(self) -> str:
        return "the group's first ledger" if self._early >= self._unrestored else "a transaction to end"

    def check_topics(self) -> None:
        """Refuse topics that cannot keep the promise, before anything is read."""
        settings = self._settings
        self._store.check(self._transport.facts(settings.input).partitions)
        for topic in filter(None, (settings.output, settings.dead_letter)):
            facts = self._transport.facts(topic)
            facts.refuse_an_old_broker()
            if topic == settings.output:
                facts.refuse_compaction(topic)
        self.check_sizes(0.0)

    def check_sizes(self, now: float) -> None:
        """Ask how large a record the topics accept now; raise `StreamAnonError` if an announced one is larger."""
        settings, state = self._settings, self._state
        self._store.check(0)
        if settings.dead_letter is not None:
            state.limit_letters(self._transport.facts(settings.dead_letter).max_message_bytes - _AROUND)
        around = _AROUND + mark_room(self._transport.facts(settings.input).partitions)
        most = self._transport.facts(settings.output).max_message_bytes - around
        announced = state.limit(most, now)
        if announced > most:
            raise StreamAnonError(
                f"the output topic takes records of {most + around:,} bytes at most, and groups with larger ones are "
                f"announced: set max.message.bytes of {settings.output} to {announced + around} or more"
            )

    def check_policy(self) -> None:
        """Refuse to join a group that works by another policy; ledgers unknown now are judged when restored."""
        facts, group = self._transport.facts(self._settings.input), self._transport.group
        reader = Reader(self._store, self._core.fingerprint, facts, group)
        for _ in range(_TRIES):
            with suppress(AbortableError):
                texts = self._transport.ledgers(range(facts.partitions))
                reader.refuse_others(texts)
                if texts:
                    break

    def concerned(self, news: GroupNews) -> bool:
        """Tell whether this poll may change the owned partitions: then no transaction may be in progress."""
        member, mine = news.membership, set(self._state.partitions)
        if news.assigned or news.out_of_range or news.over:
            return True
        return member is not None and (
            member.generation != self._generation or bool(self._unrestored) or not mine <= member.partitions
        )

    def follow(self, news: GroupNews, now: float) -> frozenset[int]:
        """Apply what the poll reported of the group; return the partitions that were and still are ours.

        1. What was assigned anew is forgotten first, even if it was ours, and what the log no longer holds at our
        position.  2. What is gone is dropped.  3. In a new generation every ledger is read again, and a partition
        somebody else wrote to is dropped.  4. What has no state is restored.
        """
        before = set(self._state.partitions)
        self._newest |= {mine.ledger.place: mine.ledger.sequence for mine in self._state.partitions.values()}
        for number in news.assigned | (news.out_of_range & before):
            self.forget(number, now)
        member = news.membership
        if news.over:
            self.distrust()
        if member is None:
            return frozenset(before & set(self._state.partitions))
        self.membership = member
        for number in (before | self._unrestored | set(self.quarantined)) - member.partitions:
            self._state.drop(number, now)
            self._observer.left(number)
            self._unrestored.discard(number)
            self.quarantined.pop(number, None)
        if member.generation != self._generation:
            self._verify(now)
            self._unrestored |= set(self.quarantined)
            self.quarantined.clear()
            self._generation = member.generation
            self._learned = float("-inf")
        self._unrestored |= member.partitions - set(self._state.partitions) - set(self.quarantined)
        stayed = frozenset(before & set(self._state.partitions))
        if self._leaving:
            return stayed
        if self._unrestored:
            self._restore(now)
        self._report_stuck(now)
        self.witness.look(now)
        self._learn(now)
        self._observer.assigned(len(self._state.partitions), dict(self.quarantined))
        return stayed

    def forget(self, number: int, now: float) -> None:
        """Drop a partition's state and restore it from its ledger later."""
        if number in self._state.partitions:
            ledger = self._state.partitions[number].ledger
            self._newest[ledger.place] = ledger.sequence
        self._state.drop(number, now)
        self._transport.pause([number])
        self.quarantined.pop(number, None)
        self._unrestored.add(number)

    def _verify(self, now: float) -> None:
        """Forget partitions that somebody else wrote to or nobody wrote: who may write first is decided again."""
        mine = self._state.partitions
        texts = self._transport.ledgers(set(mine)) if mine else {}
        for number, partition in list(mine.items()):
            if number not in texts or partition.text is None or texts[number] != partition.text:
                self.forget(number, now)

    def _restore(self, now: float) -> None:
        texts = self._transport.ledgers(self._unrestored)
        self._early.clear()
        if not texts:
            return
        try:
            restorer, siblings = self._look_around(texts)
            restorer.find({**siblings, **texts})
            found: dict[int, Beginning] = {}
            for number, text in texts.items():
                if text is None and not _settled(number, siblings, restorer.facts.partitions):
                    continue
                self._unrestored.discard(number)
                try:
                    begin = restorer.restore(number, text, siblings)
                except QuarantineError as error:
                    self._quarantine(number, error.code)
                    continue
                if text is None and not self._may_begin(restorer, siblings):
                    self._unrestored.add(number)
                    self._early.add(number)
                    continue
                if begin.ledger.sequence < self._newest.get(begin.ledger.place, 0):
                    self._unrestored.add(number)
                    if self._stuck is None:
                        _log.error("the broker returned an old ledger; asking again", extra={"partition": number})
                    continue
                found[number] = begin
            put_back, moving = self.witness.rolled_back(found, restorer)
            for number in put_back.keys() | moving:
                del found[number]
            for number, code in sorted(put_back.items()):
                self._quarantine(number, code)
            self._unrestored |= moving
            announced = self._replay(found, now)
        except AbortableError:  # the broker is not there for the moment: ask again after the next poll
            self._unrestored |= set(texts) - set(self.quarantined)
            return
        for number, begin in found.items():
            budget = self._store.budget
            partition = Partition(begin.ledger, begin.text, begin.position, announced[number], budget, begin.size)
            self._state.adopt(number, partition)
            self._transport.seek(number, begin.position)
            self._report_lost(number, begin)
        self._transport.resume(found)

    def _may_begin(self, reader: Reader, siblings: dict[int, Committed | None]) -> bool:
        """Tell whether this worker may write the first ledger of a partition.

        A group whose ledgers are ours is ours. A group without any belongs to the policy of the member that has the
        anchor in this generation: the broker refuses what it commits under another. So no two policies can begin.
        """
        has_anchor = self.membership is not None and _ANCHOR in self.membership.partitions
        return has_anchor or bool(reader.read_all(siblings)[0])

    def _look_around(self, texts: dict[int, Committed | None]) -> tuple[Restorer, dict[int, Committed | None]]:
        facts: TopicFacts = self._transport.facts(self._settings.input)
        bounds = self._transport.bounds(self._settings.input)
        used = self.witness.look_anew()
        siblings = self._transport.ledgers(range(facts.partitions)) if None in texts.values() else {}
        start, lacking = self._settings.start, self._store.lacking(facts.partitions)
        fingerprint, group = self._core.fingerprint, self._transport.group
        return Restorer(self._store, fingerprint, facts, group, bounds, used, start, lacking), siblings

    def _replay(self, found: dict[int, Beginning], now: float) -> dict[int, list[Announced]]:
        """Restore announced groups identically; withdraw those that cannot be identical."""
        refs = members_of([begin.ledger for begin in found.values()])
        fetched = self._transport.fetch(refs) if refs else {}
        announced: dict[int, list[Announced]] = {}
        for number, begin in found.items():
            groups = begin.ledger.announced
            try:
                announced[number] = self._state.renderer.reprint(begin.ledger, fetched, now)
            except WithdrawnError as error:
                announced[number] = []
                rows = sum(len(members) for members in groups)
                self._observer.withdrawn(error.reason, len(groups), rows)
                facts = {"partition": number, "reason": error.reason, "groups": len(groups), "records": rows}
                _log.error("announced groups withdrawn", extra=facts)
            _log.info("restored", extra={"partition": number, "replayed": sum(map(len, announced[number]))})
        return announced

    def _report_lost(self, number: int, begin: Beginning) -> None:
        """Report rows that waited and fell to retention before they were read again."""
        lost = int((begin.ledger.waiting < begin.position).sum())
        if lost:
            self._observer.suppressed("retention", lost)
            _log.error("records lost to retention", extra={"partition": number, "records": lost})

    def _report_stuck(self, now: float) -> None:
        """Report partitions that cannot be restored: mostly a transaction over their offsets stays open."""
        if not self._unrestored:
            self._stuck = None
        elif self._stuck is None:
            self._stuck = now
        elif now - self._stuck >= _REPORT_EVERY:
            self._stuck = now
            facts = {"partitions": sorted(self._unrestored), "remedy": _STUCK}
            _log.warning(f"waiting for {self._waits_for}", extra=facts)

    def _quarantine(self, number: int, code: str) -> None:
        self.quarantined[number] = code
        _log.error("quarantined", extra={"partition": number, "code": code, "remedy": REMEDIES[code]})

    def _learn(self, now: float) -> None:
        """Check from time to time whether every partition has a ledger by now."""
        if now - self._learned < _LEARN_EVERY or self._unrestored:
            return
        self._learned = now
        try:
            count = self._transport.facts(self._settings.input).partitions
        except AbortableError:
            return
        if count > self.known:
            texts = self._transport.ledgers(range(count))
            if len(texts) == count and all(text is not None for text in texts.values()):
                self.known = count


def _settled(number: int, siblings: dict[int, Committed | None], partitions: int) -> bool:
    """Tell whether it is certain that nobody ever committed for a partition: no open transaction, no recent commit."""
    return len(siblings) >= partitions and siblings.get(number) is None
