"""Render announced groups again from their records, byte for byte; withdraw what does not come out the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from stream_anon.errors import PrivacyViolation
from stream_anon.kafka.transport import Ref
from stream_anon.worker.groups import Core, Formed
from stream_anon.worker.ledger.codec import derive, digest_of
from stream_anon.worker.ledger.ledger import Ledger, Members


class WithdrawnError(Exception):
    """Announced groups cannot be published identically. `reason` is one of a few words."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class GroupRenderer:
    """The renderer that fixes the bytes of a group, the first time and every time after."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._key = derive(core.key, b"announced bytes")

    def fix(self, groups: Sequence[Any]) -> list[Formed]:
        """Return groups with their bytes and the digests of these."""
        ends = list(accumulate([len(group) for group in groups], initial=0))
        arrived = np.concatenate([group.arrived for group in groups])
        oldest = np.minimum.reduceat(arrived, ends[:-1]).tolist()
        return [
            Formed(
                group.id,
                group.members,
                records,
                digest_of(self._key, records),
                str(group.reason),
                arrived[first:last],
                first_arrival,
                group.losses,
                {name: len(nodes) for name, nodes in group.raised.items()},
                group,
            )
            for group, (first, last), records, first_arrival in zip(
                groups, pairwise(ends), self._core.write(groups), oldest, strict=True
            )
        ]

    def reprint(self, ledger: Ledger, fetched: dict[Ref, bytes | None], now: float) -> list[Formed]:
        """Render all announced groups of a ledger again, or raise `WithdrawnError`.

        1. Every member must still exist.  2. Every member must encode.  3. Every group must pass the gate.
        4. The bytes must have the announced digest. That the policy is the one that announced was checked before.
        One digest covers all groups of a ledger, so they are published together or not at all.
        """
        if not ledger.announced:
            return []
        if any(ref not in fetched for ref in members_of([ledger])):
            raise WithdrawnError("member_missing")
        groups = [self._again(members, fetched, now) for members in ledger.announced]
        if sum(group.digest for group in groups) % 2**64 != ledger.digest:
            raise WithdrawnError("digest_differs")
        return groups

    def _again(self, members: Members, fetched: dict[Ref, bytes | None], now: float) -> Formed:
        encoded = self._core.encode(
            [fetched[partition, offset] for partition, offset in members.tolist()], members, np.full(len(members), now)
        )
        if encoded.rejections:
            raise WithdrawnError("member_rejected")
        try:
            [group] = self.fix([self._core.release(encoded.batch)])
        except PrivacyViolation:
            raise WithdrawnError("model_fails") from None
        group.reason = "replayed"
        group.group = None
        return group


def members_of(ledgers: Sequence[Ledger]) -> list[Ref]:
    """Return every record that announced groups need."""
    every = [members for ledger in ledgers for members in ledger.announced]
    return sorted({(partition, offset) for members in every for partition, offset in members.tolist()})
