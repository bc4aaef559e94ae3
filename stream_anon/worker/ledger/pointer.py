"""The pointer beside an offset to a ledger in a ledger topic: the record's exact place, and a keyed digest of it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from stream_anon.kafka.transport import Committed
from stream_anon.worker.ledger.codec import LedgerError, b85encode, unsealed, whose_of
from stream_anon.worker.ledger.ledger import Place
from stream_anon.worker.ledger.packing import Reader, Writer
from stream_anon.worker.ledger.seal import Seal

POINTS = "P"
"""The first character of a pointer: its version, apart from those of ledgers."""

_DIGEST = 16
_TOPIC = 8


class Pointer(NamedTuple):
    """The place of a record in a ledger topic, and what it holds. `topic` is a tag of the topic's id, not its name."""

    topic: bytes
    partition: int
    offset: int
    digest: bytes


class PointerSeal:
    """Seals pointers under a key derived from the policy's secret, and makes the digests of what they point to."""

    def __init__(self, secret: bytes) -> None:
        self._seal = Seal.of(secret, b"pointer")

    def point(self, topic_id: str, partition: int, offset: int, record: bytes) -> Pointer:
        """Return a pointer to a record."""
        return Pointer(tag_of(topic_id), partition, offset, self.digest(record))

    def digest(self, record: bytes) -> bytes:
        """Return the keyed digest of a record."""
        return self._seal.digest(record)[:_DIGEST]

    def encode(self, pointer: Pointer, low: int, place: Place) -> Committed:
        """Return the text beside an offset that leads to the ledger of `place`."""
        out = Writer()
        out.raw(whose_of(place) + pointer.topic + pointer.digest)
        out.number(pointer.partition)
        out.number(pointer.offset)
        return Committed(low, POINTS + b85encode(self._seal.close(out.bytes(), POINTS.encode())) + "\0")

    def decode(self, committed: Committed, place: Place) -> Pointer:
        """Return the pointer, or raise a `LedgerError` that says why this is none of `place`."""
        read = Reader(unsealed(self._seal, committed.metadata.partition("\0")[0]))
        try:
            whose, topic, digest = read.raw(len(whose_of(place))), read.raw(_TOPIC), read.raw(_DIGEST)
            pointer = Pointer(topic, read.number(), read.number(), digest)
            read.end()
        except ValueError:
            raise LedgerError("malformed", "the pointer was decrypted, but its content is malformed") from None
        if whose != whose_of(place):
            raise LedgerError("misplaced", "the pointer belongs to another cluster, group, topic or partition")
        return pointer


def tag_of(topic_id: str) -> bytes:
    """Return a short digest of a topic's id."""
    return hashlib.sha256(topic_id.encode()).digest()[:_TOPIC]
