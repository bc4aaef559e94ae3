"""Where a worker may begin with a partition: from its ledger, from a start that is proved new, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stream_anon.io.transport import Committed, TopicFacts
from stream_anon.runtime.codec import Codec, LedgerError
from stream_anon.runtime.ledger import Ledger, Place
from stream_anon.runtime.partition import Partition

Start = Literal["earliest", "latest"]

REMEDIES = {
    "empty": "another program or a tool committed this offset without its ledger: delete the group's offset of this "
    "partition and say with --from where to begin",
    "version": "run the version of this program that wrote the ledger until the group is drained, then change",
    "unreadable": "give back the secret the group was started with, or use a new group name",
    "malformed": "use a new group name, and report this",
    "misplaced": "the topic was made anew or moved: use a new group name",
    "moved": "a tool changed the offset and not its ledger: delete the group's offset of this partition and say with "
    "--from where to begin",
    "beyond": "the log ends before the committed offset, so the broker lost records: use a new group name",
    "unproved": "nothing is committed for this partition but the output was used already: if it is safe to read it "
    "again, say so with --from earliest, or skip what is there with --from latest",
}
"""What to do about each quarantine; the words are the codes in logs and metrics."""


class QuarantineError(Exception):
    """This partition must not be touched. `code` is a key of `REMEDIES`."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(f"{code}: {REMEDIES[code]}")


@dataclass(frozen=True, slots=True)
class Restorer:
    """Decides with what is known of the topic, its bounds, the output and the ledgers of all partitions."""

    codec: Codec
    fingerprint: bytes
    facts: TopicFacts
    bounds: Mapping[int, tuple[int, int]]
    output_used: bool
    start: Start | None

    def place(self, partition: int) -> Place:
        """Where a ledger of this partition belongs."""
        return Place(self.facts.cluster_id, self.facts.topic_id, partition)

    def restore(
        self, partition: int, committed: Committed | None, siblings: Mapping[int, Committed | None]
    ) -> Partition:
        """The partition as its ledger left it, ready to be read from `position`; else `QuarantineError`."""
        if committed is None:
            at = self._first(partition, siblings)
            return Partition(Ledger(self.place(partition), self.fingerprint, at), None, at)
        try:
            ledger = self.codec.decode(committed, self.place(partition))
        except LedgerError as error:
            raise QuarantineError(error.code) from None
        first, end = self.bounds[partition]
        if ledger.position > end:  # below the position everything else counts as finished, new records too
            raise QuarantineError("beyond")
        return Partition(ledger, committed, max(ledger.low, first))

    def _first(self, partition: int, siblings: Mapping[int, Committed | None]) -> int:
        """The first offset of a partition nobody committed for.

        A partition beyond those known to have had a ledger was added later and is read from its beginning. While the
        group never had all its ledgers it is just starting. Else an offset expired, and reading again would repeat.
        """
        first, end = self.bounds[partition]
        told = end if self.start == "latest" else first
        known = self._known(siblings)
        if known is None:
            if self.output_used and self.start is None:
                raise QuarantineError("unproved")
            return told
        if known == 0:
            return told
        if partition >= known:
            return first
        if self.start is None:
            raise QuarantineError("unproved")
        return told

    def _known(self, siblings: Mapping[int, Committed | None]) -> int | None:
        """How many partitions are known to have had a ledger; None without any ledger that can be read."""
        known = []
        for number, committed in siblings.items():
            if committed is not None:
                try:
                    known.append(self.codec.decode(committed, self.place(number)).known)
                except LedgerError:
                    continue
        return max(known, default=None)
