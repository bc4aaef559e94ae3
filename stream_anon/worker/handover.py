"""Move a consumer group from one policy, or one secret, to another; possible only while the group has no member."""

from __future__ import annotations

import secrets
import time

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.doctor import LONGEST_TRANSACTION
from stream_anon.kafka.transport import Committed, Transport
from stream_anon.worker.core import Core
from stream_anon.worker.ledger.codec import LedgerError
from stream_anon.worker.ledger.ledger import Author, Ledger, Place
from stream_anon.worker.ledger.store import Found
from stream_anon.worker.ledger.topic import store_of
from stream_anon.worker.takeover.restore import LOST, REMEDIES

_SHORTEST = 6
"""Digits of a fingerprint that must be given: as many as published records carry."""

_DRAIN = "start the old policy once more and end it with SIGTERM: that publishes them"


class HandoverError(StreamAnonError):
    """The group cannot be moved in its present state. Nothing was changed."""


def hand_over(
    transport: Transport,
    topic: str,
    core: Core,
    old: str,
    old_key: bytes | None = None,
    ledger_topic: str | None = None,
) -> int:
    """Rewrite every ledger that policy `old` left in the group under the policy of `core`; return how many there were.

    1. Every ledger must be settled and written by the old policy, or by the new one already.  2. None may announce a
    group: its rows may be visible to some readers, and no other policy may put them into another one.  3. All are
    committed at once, as no member: the broker refuses that while the group has members, so that no worker of the old
    policy can be at work. What waits still waits, and what is finished stays finished. In a ledger topic the new ones
    are written beforehand, under other keys: they count from the moment that offsets point to them.
    """
    old = _fingerprint(old)
    facts = transport.facts(topic)
    mine, theirs = (store_of(transport, ledger_topic, key) for key in (core.key, old_key or core.key))
    mine.check(facts.partitions)
    texts: dict[Place, Committed] = {}
    found = {
        Place(facts.cluster_id, facts.topic_id, number, transport.group): committed
        for number, committed in _settled(transport, facts.partitions).items()
    }
    ours, before = mine.find(found), theirs.find(found)
    for place in found:
        ledger = _ledger(before[place])
        if ledger is None or not ledger.fingerprint.hex().startswith(old):
            again = _ledger(ours[place])
            if again is not None and again.fingerprint == core.fingerprint:
                continue
            raise HandoverError(_not_theirs(place.partition, before[place], old))
        if ledger.announced:
            raise HandoverError(f"partition {place.partition}: groups are announced and not published yet: {_DRAIN}")
        author = Author(core.fingerprint, secrets.randbits(32), ledger.known, ledger.seen)
        texts[place] = mine.codec.encode(ledger.following(ledger.position, ledger.waiting, (), 0, author))
        if not mine.budget.fits(texts[place]):
            raise HandoverError(f"partition {place.partition}: its ledger is full: {_DRAIN}")
    if texts:
        transport.replace_ledgers(mine.keep_aside(texts))
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


def _ledger(found: Found | LedgerError) -> Ledger | None:
    return None if isinstance(found, LedgerError) else found.ledger


def _not_theirs(number: int, found: Found | LedgerError, old: str) -> str:
    if not isinstance(found, LedgerError):
        return f"partition {number}: the ledger was written by {found.ledger.fingerprint.hex()}, not by {old}"
    if found.code in LOST:
        return f"partition {number}: {found}: {REMEDIES[found.code]}"
    return f"partition {number}: the ledger cannot be read with the old secret: give it with --old-secret"


def _fingerprint(text: str) -> str:
    """Return the digits that follow the @ in published records, or more digits of the same."""
    digits = text.rpartition("@")[2].lower()[:16]
    if len(digits) < _SHORTEST or set(digits) - set("0123456789abcdef"):
        raise HandoverError(f"--from takes a fingerprint: at least {_SHORTEST} digits, as in `_anon.policy`")
    return digits
