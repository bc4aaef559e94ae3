"""The state of each partition that a worker was assigned, for whoever looks at it from another thread."""

from __future__ import annotations

from collections.abc import Collection

from stream_anon.observe.live.status import PartitionFacts, PartitionState
from stream_anon.worker.takeover.ownership import Ownership
from stream_anon.worker.takeover.restore import REMEDIES


def standing_of(ownership: Ownership, paused: Collection[int]) -> list[PartitionFacts]:
    """Return the partitions of a worker: read, paused while ledgers are full, being restored, or quarantined."""
    quarantined, stopped = dict(ownership.quarantined), set(paused)
    found = [PartitionFacts(n, "quarantined", code=code, remedy=REMEDIES[code]) for n, code in quarantined.items()]
    found += [PartitionFacts(number, "restoring") for number in ownership.unrestored]
    for number in ownership.owned:
        state: PartitionState = "paused" if number in stopped else "reading"
        found.append(PartitionFacts(number, state))
    return sorted(found, key=lambda each: each.partition)
