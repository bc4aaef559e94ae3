"""Ledgers in a compacted topic: a record each, written first in the transaction whose offsets point to it.

A record counts only if a committed offset points to it. Behind the record that is pointed to, no other of its key can
be committed: it would have come with a pointer of its own. If there is one, the offset was put back.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import (
    AbortableError,
    Committed,
    NotAllowedError,
    Placed,
    Ref,
    TopicFacts,
    Transport,
    TransportError,
)
from stream_anon.worker.ledger.budget import IN_TOPIC
from stream_anon.worker.ledger.codec import Codec, LedgerError
from stream_anon.worker.ledger.ledger import Place
from stream_anon.worker.ledger.pointer import POINTS, Pointer, PointerSeal, tag_of
from stream_anon.worker.ledger.store import Found, InlineStore, LedgerStore, decoded


class LedgerTopic:
    """The ledgers of one consumer group in a ledger topic, which other groups may share.

    The ledger of partition n of the input is kept in partition n of the topic.
    """

    budget = IN_TOPIC

    def __init__(self, transport: Transport, topic: str, secret: bytes) -> None:
        self.codec = Codec.of(secret)
        self._transport, self._topic, self._seal = transport, topic, PointerSeal(secret)
        self._facts: TopicFacts | None = None  # as the topic was when it was last looked at

    def keep(self, texts: Mapping[Place, Committed]) -> dict[int, Committed]:
        """Write the texts as records, wait until they are taken, and return pointers to them."""
        return self._write({place: (_key(place), text) for place, text in texts.items()})

    def keep_aside(self, texts: Mapping[Place, Committed]) -> dict[int, Committed]:
        """Write the texts under keys of their own.

        They follow nothing: compaction keeps the records that are pointed to as long as these are not.
        """
        aside = b"/" + secrets.token_hex(8).encode()
        self._transport.begin()
        found = self._write({place: (_key(place) + aside, text) for place, text in texts.items()})
        self._transport.commit()
        return found

    def _write(self, texts: Mapping[Place, tuple[bytes, Committed]]) -> dict[int, Committed]:
        facts = self._known()
        if facts is None:
            raise AbortableError("there is no ledger topic")
        records = [
            Placed(self._topic, place.partition, key, text.metadata.encode("ascii"))
            for place, (key, text) in texts.items()
        ]
        offsets = self._transport.write(records)
        found = {}
        for (place, (_, text)), record, offset in zip(texts.items(), records, offsets, strict=True):
            pointer = self._seal.point(facts.topic_id, record.partition, offset, record.value)
            found[place.partition] = self._seal.encode(pointer, text.offset, place)
        return found

    def find(self, committed: Mapping[Place, Committed]) -> dict[Place, Found | LedgerError]:
        """Fetch the records that are pointed to, all at once, and prove each by its digest."""
        found: dict[Place, Found | LedgerError] = {}
        pointers: dict[Place, Pointer] = {}
        for place, text in committed.items():
            if not text.metadata.startswith(POINTS):
                found[place] = decoded(self.codec, text, place)
                continue
            try:
                pointers[place] = self._seal.decode(text, place)
            except LedgerError as error:
                found[place] = error
        records = self._fetch(pointers)
        for place, pointer in pointers.items():
            found[place] = self._prove(place, committed[place], pointer, records.get(place))
        return found

    def _fetch(self, pointers: Mapping[Place, Pointer]) -> dict[Place, bytes | LedgerError]:
        """Return the records that stand where pointers say, of whatever content; leave out what is not there."""
        if not pointers:
            return {}
        facts = self._known()
        if facts is None:
            return {place: LedgerError("lost", "there is no ledger topic of this name") for place in pointers}
        found: dict[Place, bytes | LedgerError] = {}
        wanted = {}
        for place, pointer in pointers.items():
            if pointer.topic != tag_of(facts.topic_id):
                found[place] = LedgerError(
                    "elsewhere", "the ledger is kept in another topic, or this one was made anew"
                )
            elif pointer.partition < facts.partitions:
                wanted[pointer.partition, pointer.offset] = place
        rest = set(wanted)
        if rest:
            for record in self._transport.read(self._topic, dict(wanted.keys()), committed=False):
                if (record.partition, record.offset) in rest:
                    rest.remove((record.partition, record.offset))
                    found[wanted[record.partition, record.offset]] = record.value or b""
                    if not rest:
                        break
        return found

    def _prove(
        self, place: Place, committed: Committed, pointer: Pointer, record: bytes | LedgerError | None
    ) -> Found | LedgerError:
        """Return the ledger in a record, if it is the one that the pointer was made for."""
        if isinstance(record, LedgerError):
            return record
        if record is None:
            return LedgerError("lost", "the record that the offset points to is gone from the ledger topic")
        if self._seal.digest(record) != pointer.digest:
            return LedgerError("foreign", "another record stands where the offset points to")
        return decoded(self.codec, Committed(committed.offset, record.decode("ascii")), place)

    def followed(self, committed: Mapping[Place, Committed | None]) -> set[int]:
        """Look for records behind those that are pointed to, and if there are any, whether they were committed."""
        since: dict[Place, Ref] = {}
        facts = self._known()
        for place, text in committed.items():
            if facts is None or place.partition >= facts.partitions:
                continue
            since[place] = place.partition, 0
            if text is not None and text.metadata.startswith(POINTS):
                pointer = self._seal.decode(text, place)
                since[place] = pointer.partition, pointer.offset + 1
        doubtful = self._behind(since, committed=False)
        return {place.partition for place in self._behind({place: since[place] for place in doubtful}, committed=True)}

    def _behind(self, since: Mapping[Place, Ref], *, committed: bool) -> set[Place]:
        """Return the places of which the topic holds a record from the given offset on."""
        if not since:
            return set()
        keys = {_key(place): place for place in since}
        found = self._transport.read(self._topic, dict(since.values()), committed)
        return {keys[record.key] for record in found if record.key is not None and record.key in keys}

    def _look(self) -> TopicFacts | None:
        """Ask for the topic, which may be another one by now; return None if there is none."""
        self._facts = None
        try:
            self._facts = self._transport.facts(self._topic)
        except (AbortableError, NotAllowedError):
            raise
        except TransportError:
            pass
        return self._facts

    def _known(self) -> TopicFacts | None:
        """Return the topic as it was last seen. If it was made anew since, no pointer into it proves true."""
        return self._facts or self._look()

    def lacking(self, partitions: int) -> set[int]:
        """Return the partitions of the input that the topic has none for."""
        facts = self._look()
        return set(range(facts.partitions if facts else 0, partitions))

    def check(self, partitions: int) -> None:
        """Refuse a topic that would lose ledgers, or that has too little room for them."""
        facts = self._look()
        if facts is None:
            raise StreamAnonError(
                f"there is no ledger topic {self._topic}: create it with stream-anon topics; if it was deleted, what "
                "offsets point to is lost (docs/kafka.md, quarantine)"
            )
        facts.refuse_an_old_broker()
        if facts.cleanup_policy != "compact":
            raise StreamAnonError(
                f"the ledger topic {self._topic} has cleanup.policy={facts.cleanup_policy}, which would delete ledgers "
                "that are still needed: set it to compact"
            )
        if facts.partitions < partitions:
            raise StreamAnonError(
                f"the ledger topic {self._topic} has {facts.partitions} partition(s), and the input {partitions}: "
                "give it as many"
            )
        if facts.max_message_bytes < self.budget.record_bytes:
            raise StreamAnonError(
                f"the ledger topic {self._topic} takes records of {facts.max_message_bytes:,} bytes at most: "
                f"set its max.message.bytes to {self.budget.record_bytes} or more"
            )


def store_of(transport: Transport, topic: str | None, secret: bytes) -> LedgerStore:
    """Return where the ledgers of a worker are kept: in this topic, or beside their offsets."""
    return InlineStore(Codec.of(secret)) if topic is None else LedgerTopic(transport, topic, secret)


def _key(place: Place) -> bytes:
    """Return the key of a ledger's records; neither topic ids nor numbers hold a slash."""
    return f"{place.group}/{place.topic_id}/{place.partition}".encode()
