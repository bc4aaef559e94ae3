"""Render announced groups again from their records, byte for byte; withdraw what does not come out the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Floats
from stream_anon.errors import PrivacyViolation
from stream_anon.kafka.transport import Ref
from stream_anon.worker.core import Core
from stream_anon.worker.group_life import Announced, Formed, GroupFacts, announce
from stream_anon.worker.ledger.codec import combined, digest_of
from stream_anon.worker.ledger.ledger import Ledger
from stream_anon.worker.ledger.seal import derive


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

    def fix(self, groups: Sequence[Group], born: Floats, reason: str | None = None) -> list[Formed]:
        """Return groups with their bytes and the digests of these; `born` are their records' own times, one by one."""
        ends = list(accumulate(map(len, groups), initial=0))
        arrived = np.concatenate([group.arrived for group in groups])
        oldest = np.minimum.reduceat(arrived, ends[:-1]).tolist()
        key, fixed, write = self._key, [], self._core.write(groups)
        for group, (first, last), earliest, records in zip(groups, pairwise(ends), oldest, write, strict=True):
            raised = {name: len(nodes) for name, nodes in group.raised.items()}
            told = reason or str(group.reason)
            facts = GroupFacts(told, arrived[first:last], earliest, born[first:last], group.losses, raised)
            fixed.append(Formed(group, group.members, records, digest_of(key, records), facts))
        return fixed

    def reprint(self, ledger: Ledger, fetched: Mapping[Ref, bytes | None], now: float) -> list[Announced]:
        """Render all announced groups of a ledger again, or raise `WithdrawnError`.

        1. Every member must still exist.  2. Every member must encode.  3. Every group must pass the gate.
        4. The bytes must have the announced digest. That the policy is the one that announced was checked before.
        One digest covers all groups of a ledger, so they are published together or not at all.
        """
        if not ledger.announced:
            return []
        members = np.concatenate(ledger.announced)
        refs = list(map(tuple, members.tolist()))
        if any(ref not in fetched for ref in refs):
            raise WithdrawnError("member_missing")
        encoded = self._core.encode([fetched[ref] for ref in refs], members, np.full(len(refs), now))
        if encoded.rejections:
            raise WithdrawnError("member_rejected")
        ends = accumulate([len(group) for group in ledger.announced], initial=0)
        try:
            groups = [self._core.release(encoded.batch.take(slice(first, last))) for first, last in pairwise(ends)]
        except PrivacyViolation:
            raise WithdrawnError("model_fails") from None
        fixed = self.fix(groups, np.full(len(refs), np.nan), "replayed")
        if combined(group.digest for group in fixed) != ledger.digest:
            raise WithdrawnError("digest_differs")
        return announce(fixed, ledger)


def members_of(ledgers: Sequence[Ledger]) -> list[Ref]:
    """Return every record that announced groups need."""
    every = [members for ledger in ledgers for members in ledger.announced]
    return sorted({(partition, offset) for members in every for partition, offset in members.tolist()})
