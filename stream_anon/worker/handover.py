"""Move a consumer group from one policy, or one secret, to another; possible only while the group has no member."""

from __future__ import annotations

import secrets
import time

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.doctor import LONGEST_TRANSACTION
from stream_anon.kafka.transport import Committed, Transport
from stream_anon.worker.core import Core
from stream_anon.worker.ledger.budget import INLINE
from stream_anon.worker.ledger.codec import Codec, LedgerError
from stream_anon.worker.ledger.ledger import Author, Ledger, Place

_SHORTEST = 6
"""Digits of a fingerprint that must be given: as many as published records carry."""

_DRAIN = "start the old policy once more and end it with SIGTERM: that publishes them"


class HandoverError(StreamAnonError):
    """The group cannot be moved in its present state. Nothing was changed."""


def hand_over(transport: Transport, topic: str, core: Core, old: str, old_key: bytes | None = None) -> int:
    """Rewrite every ledger that policy `old` left in the group under the policy of `core`; return how many there were.

    1. Every ledger must be settled and written by the old policy, or by the new one already.  2. None may announce a
    group: its rows may be visible to some readers, and no other policy may put them into another one.  3. All are
    committed at once, as no member: the broker refuses that while the group has members, so that no worker of the old
    policy can be at work. What waits still waits, and what is finished stays finished.
    """
    old = _fingerprint(old)
    facts = transport.facts(topic)
    mine, theirs = Codec.of(core.key), Codec.of(old_key or core.key)
    texts: dict[int, Committed] = {}
    found = _settled(transport, facts.partitions)
    for number, committed in found.items():
        place = Place(facts.cluster_id, facts.topic_id, number, transport.group)
        ledger = _read(committed, place, theirs)
        if ledger is None or not ledger.fingerprint.hex().startswith(old):
            again = _read(committed, place, mine)
            if again is not None and again.fingerprint == core.fingerprint:
                continue
            raise HandoverError(_not_theirs(number, ledger, old))
        if ledger.announced:
            raise HandoverError(f"partition {number}: groups are announced and not published yet: {_DRAIN}")
        author = Author(core.fingerprint, secrets.randbits(32), ledger.known, ledger.seen)
        texts[number] = mine.encode(ledger.following(ledger.position, ledger.waiting, (), 0, author))
        if not INLINE.fits(texts[number]):
            raise HandoverError(f"partition {number}: its ledger is full: {_DRAIN}")
    if texts:
        transport.replace_ledgers(texts)
    return len(found)


def _settled(transport: Transport, partitions: int) -> dict[int, Committed]:
    """Read the ledgers of all partitions that have one; wait for transactions that are still open."""
    every = set(range(partitions))
    found, until = transport.ledgers(every), time.monotonic() + LONGEST_TRANSACTION
    while len(found) < len(every):
        if time.monotonic() > until:
            raise HandoverError("an open transaction holds a ledger: try again when stream-anon doctor finds none")
        found |= transport.ledgers(every - set(found))
    ledgers = {number: text for number, text in found.items() if text is not None}
    if not ledgers:
        raise HandoverError("the group has no ledger: no worker ever committed for it, so just start the new policy")
    return ledgers


def _read(committed: Committed, place: Place, codec: Codec) -> Ledger | None:
    try:
        return codec.decode(committed, place)
    except LedgerError:
        return None


def _not_theirs(number: int, ledger: Ledger | None, old: str) -> str:
    if ledger is None:
        return f"partition {number}: the ledger cannot be read with the old secret: give it with --old-secret"
    return f"partition {number}: the ledger was written by {ledger.fingerprint.hex()}, not by {old}"


def _fingerprint(text: str) -> str:
    """Return the digits that follow the @ in published records, or more digits of the same."""
    digits = text.rpartition("@")[2].lower()[:16]
    if len(digits) < _SHORTEST or set(digits) - set("0123456789abcdef"):
        raise HandoverError(f"--from takes a fingerprint: at least {_SHORTEST} digits, as in `_anon.policy`")
    return digits
