"""Decide where a worker may begin with a partition: at its ledger, at a start that is proved new, or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Committed, TopicFacts
from stream_anon.worker.ledger.codec import LedgerError
from stream_anon.worker.ledger.ledger import Ledger, Place
from stream_anon.worker.ledger.store import Found, LedgerStore

Start = Literal["earliest", "latest"]

REMEDIES = {
    "empty": "another program or a tool committed this offset without its ledger: delete the group's offset of this "
    "partition and set with --from where to begin",
    "version": "run the version of this program that wrote the ledger until the group is drained, then use a new group "
    "name with --from latest",
    "unreadable": "give back the secret the group was started with, or move the group with stream-anon handover, "
    "or use a new group name",
    "malformed": "use a new group name, and report this",
    "misplaced": "the topic was made anew or moved, or the ledger is another group's: use a new group name",
    "moved": "a tool changed the offset and not its ledger: delete the group's offset of this partition and say with "
    "--from where to begin",
    "beyond": "the log ends before the committed offset, so the broker lost records: use a new group name",
    "rolled-back": "an older ledger of this partition was put back, and rows that it lets wait were published since: "
    "restore the group's latest offsets; or delete the group's offset of this partition and start with --from latest; "
    "or use a new group name and a new output topic",
    "elsewhere": "the offset points into a ledger topic, and this is another one or none: name it as `kafka.ledger`; "
    "if it was deleted or made anew, delete the group's offset of this partition and start with --from latest, or use "
    "a new group name and a new output topic",
    "lost": "the ledger topic no longer holds the record that the offset points to: restore it; or delete the group's "
    "offset of this partition and start with --from latest; or use a new group name and a new output topic",
    "foreign": "the ledger topic holds another record where the offset points to, so its log was cut and written anew: "
    "as for a record that is lost",
    "uncovered": "the ledger topic has no partition of this number: give it as many partitions as the input, and "
    "start the workers again",
    "unproved": "nothing is committed for this partition but the output was used already: if it is safe to read it "
    "again, say so with --from earliest, or skip what is there with --from latest",
}
"""What to do about each quarantine; the words are the codes in logs and metrics."""

LOST = frozenset({"elsewhere", "lost", "foreign"})
"""The codes of ledgers that were kept in a ledger topic and cannot be found there."""


class QuarantineError(Exception):
    """This partition must not be touched. `code` is a key of `REMEDIES`."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(f"{code}: {REMEDIES[code]}")


class OtherPolicyError(StreamAnonError):
    """The consumer group belongs to another policy: two of them would publish the same people by two rules."""

    exit_code: ClassVar[int] = 3

    def __init__(self, partition: int, theirs: bytes | None, ours: bytes) -> None:
        by = "another secret" if theirs is None else f"the policy with fingerprint {theirs.hex()}"
        super().__init__(
            f"the consumer group works by {by} (ledger of partition {partition}), this policy has fingerprint "
            f"{ours.hex()}: start the policy of the group; or give this one its own `kafka.group` and `kafka.output`; "
            "or end all workers of the group and move it with: stream-anon handover (docs/kafka.md, rolling to a new "
            "policy)"
        )


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of the ledgers of one input topic under one policy; it refuses those of another."""

    store: LedgerStore
    fingerprint: bytes
    facts: TopicFacts
    group: str
    _found: dict[tuple[int, Committed], Found | LedgerError] = field(default_factory=dict, init=False, repr=False)

    def place(self, partition: int) -> Place:
        """Return where a ledger of this partition belongs."""
        return Place(self.facts.cluster_id, self.facts.topic_id, partition, self.group)

    def find(self, ledgers: Mapping[int, Committed | None]) -> None:
        """Find ledgers all at once and remember them: one after the other would take longer."""
        new = {
            self.place(number): text
            for number, text in ledgers.items()
            if text is not None and (number, text) not in self._found
        }
        if new:
            for place, found in self.store.find(new).items():
                self._found[place.partition, new[place]] = found

    def read(self, partition: int, committed: Committed) -> Ledger:
        """Return a ledger; raise `LedgerError`, or `OtherPolicyError` if another policy wrote it."""
        return self._read(partition, committed).ledger

    def _read(self, partition: int, committed: Committed) -> Found:
        self.find({partition: committed})
        found = self._found[partition, committed]
        if isinstance(found, LedgerError):
            raise found
        if found.ledger.fingerprint != self.fingerprint:
            raise OtherPolicyError(partition, found.ledger.fingerprint, self.fingerprint)
        return found

    def read_all(self, ledgers: Mapping[int, Committed | None]) -> tuple[list[Ledger], list[str]]:
        """Read what can be read, and collect the codes of what cannot."""
        found: list[Ledger] = []
        codes: list[str] = []
        self.find(ledgers)
        for number, committed in ledgers.items():
            if committed is not None:
                try:
                    found.append(self.read(number, committed))
                except LedgerError as error:
                    codes.append(error.code)
        return found, codes

    def refuse_others(self, ledgers: Mapping[int, Committed | None]) -> None:
        """Raise `OtherPolicyError` if the group works by another policy, or by another secret altogether."""
        found, codes = self.read_all(ledgers)
        if "unreadable" in codes and not found:
            raise OtherPolicyError(min(n for n, text in ledgers.items() if text is not None), None, self.fingerprint)


class Beginning(NamedTuple):
    """Where a partition goes on: its ledger, what is committed of it, the next offset to read, the size of its text."""

    ledger: Ledger
    text: Committed | None
    position: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class Restorer(Reader):
    """A restorer that decides by the facts of the topic, its bounds, the output and the ledgers of all partitions.

    `lacking` are the partitions whose ledgers cannot be kept.
    """

    bounds: Mapping[int, tuple[int, int]]
    output_used: bool
    start: Start | None
    lacking: Collection[int] = ()

    def restore(
        self, partition: int, committed: Committed | None, siblings: Mapping[int, Committed | None]
    ) -> Beginning:
        """Return where the partition goes on, as its ledger left it.

        Raises `QuarantineError`, or `OtherPolicyError` if another policy wrote the ledger.
        """
        if committed is None:
            if partition in self.lacking:
                raise QuarantineError("uncovered")
            at = self._first(partition, siblings)
            return Beginning(self._new(partition, at, siblings), None, at)
        try:
            ledger, size = self._read(partition, committed)
        except LedgerError as error:
            put_back = error.code == "lost" and self.store.followed({self.place(partition): committed})
            raise QuarantineError("rolled-back" if put_back else error.code) from None
        if partition in self.lacking:  # it was kept elsewhere so far
            raise QuarantineError("uncovered")
        first, end = self.bounds[partition]
        if ledger.position > end:  # below the position everything else counts as finished, new records too
            raise QuarantineError("beyond")
        return Beginning(ledger, committed, max(ledger.low, first), size)

    def _new(self, partition: int, at: int, siblings: Mapping[int, Committed | None]) -> Ledger:
        """Return the first ledger of a partition; one that was lost may be known to siblings, which it must follow."""
        told = [ledger.parties.get(partition, 0) for ledger in self.read_all(siblings)[0]]
        return Ledger(self.place(partition), self.fingerprint, at, sequence=max(told, default=0))

    def _first(self, partition: int, siblings: Mapping[int, Committed | None]) -> int:
        """Return the first offset of a partition nobody committed for.

        A partition beyond those known to have had a ledger was added later and is read from its beginning. While the
        group never had all its ledgers it is just starting. Else an offset expired, and reading again would repeat.
        """
        first, end = self.bounds[partition]
        asked = end if self.start == "latest" else first
        ledgers, codes = self.read_all(siblings)
        if not ledgers:
            if "unreadable" in codes:
                raise QuarantineError("unreadable")
            if (self.output_used or LOST.intersection(codes)) and self.start is None:
                raise QuarantineError("unproved")
            return asked
        known = max(ledger.known for ledger in ledgers)
        if known == 0:
            return asked
        if partition >= known:
            return first
        if self.start is None:
            raise QuarantineError("unproved")
        return asked
