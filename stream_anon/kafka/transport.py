"""The protocol between the worker and a log broker; independent of client libraries and of what records mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable
from zlib import crc32

from stream_anon.errors import StreamAnonError

Ref = tuple[int, int]
"""Where a record of the input stands: (partition, offset)."""


LEDGER_TOO_LARGE = (
    "the broker does not take the ledgers of a transaction: set max.message.bytes of __consumer_offsets, or the "
    "broker's message.max.bytes, to 4,200 per partition of the input or more"
)


RIGHT_MISSING = "a right is missing, or was taken away: stream-anon doctor names it"


class TransportError(StreamAnonError):
    """The broker or the connection failed; no message holds a record's content."""


class AbortableError(TransportError):
    """This transaction cannot be committed, but the worker may abort it and go on."""


class OutcomeUnknownError(TransportError):
    """A commit got no answer: only the ledgers, read after `renew`, show what happened."""


class FencedError(TransportError):
    """Another worker took this one's transactional id, or the client cannot go on: the process has to end."""


class GroupInUseError(TransportError):
    """The consumer group has members, so a commit from outside the group is refused."""

    def __init__(self) -> None:
        super().__init__(
            "the consumer group has members: end all its workers, wait for the session time-out of those that were "
            "killed, and ask again"
        )


class NotAllowedError(TransportError):
    """The broker denies this user something: `operation` has to be allowed on `what`."""

    def __init__(self, what: str, operation: str) -> None:
        self.operation = operation
        super().__init__(f"no permission: allow {operation} on {what}")


class Slice(NamedTuple):
    """The records of one partition in one poll, column by column. Keys and headers of the input are dropped."""

    partition: int
    offsets: list[int]
    timestamps: list[float]
    values: list[bytes | None]


@dataclass(frozen=True, slots=True)
class Membership:
    """The group's generation and its assignment to this member, captured together; `token` is the client's own."""

    generation: int
    member: str
    partitions: frozenset[int]
    token: object = field(compare=False, repr=False)


class GroupNews(NamedTuple):
    """What a poll tells of the consumer group: the membership if it is stable, and which partitions begin anew."""

    membership: Membership | None
    assigned: frozenset[int]
    out_of_range: frozenset[int]
    over: bool


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of a poll: records, the next offset per partition, and the membership if it is stable, else None.

    `assigned` are partitions given to this member since the last poll. They stay paused, at no meaningful position,
    until the worker seeks and resumes them. `out_of_range` are those whose position the log does not hold. `ends` are
    the end offsets the client last heard of. `over` means that a membership captured before is no longer valid; a
    client that cannot know leaves it to the broker to refuse it.
    """

    slices: tuple[Slice, ...]
    positions: Mapping[int, int]
    membership: Membership | None
    assigned: frozenset[int] = frozenset()
    out_of_range: frozenset[int] = frozenset()
    ends: Mapping[int, int] = field(default_factory=dict)
    over: bool = False

    @property
    def news(self) -> GroupNews:
        """What it tells of the group, without the records."""
        return GroupNews(self.membership, self.assigned, self.out_of_range, self.over)


class Committed(NamedTuple):
    """A committed offset and the text that was committed with it."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The identity and the settings of a topic: they distinguish it from another of the same name."""

    topic_id: str
    cluster_id: str
    partitions: int
    cleanup_policy: str = "delete"
    max_message_bytes: int = 1_048_588

    def refuse_an_old_broker(self) -> None:
        """Raise if the broker has no topic ids: it then also lacks requests that make a takeover safe."""
        if not self.topic_id.strip("0-") or self.topic_id == "None":
            raise StreamAnonError("the broker has no topic ids: Kafka 2.8 or later is needed")

    def refuse_compaction(self, topic: str) -> None:
        """Raise if the output is compacted: it would keep one record per group, as the key is the group."""
        if "compact" in self.cleanup_policy:
            raise StreamAnonError(
                f"the output topic {topic} is compacted, which would keep one record of each group: "
                "set its cleanup.policy to delete"
            )


class Outgoing(NamedTuple):
    """Records to be sent under one key, in their order. Their timestamp is the time of sending.

    A `mark` is the header `MARK` of the first of them; `Transport.read` finds it again.
    """

    topic: str
    key: bytes
    values: Sequence[bytes]
    mark: bytes = b""


MARK = "stream-anon"
"""The name of the header that carries a mark."""


class Placed(NamedTuple):
    """One record for a partition of one's choice."""

    topic: str
    partition: int
    key: bytes
    value: bytes


class Stored(NamedTuple):
    """A record as a topic holds it; `mark` is empty if it carries none."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    mark: bytes = b""


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of so many that a record with this key goes to."""
    return crc32(key) % partitions


class Pending(Protocol):
    """A call that runs while its caller goes on."""

    def done(self) -> bool:
        """Tell whether the call has ended."""

    def result(self) -> None:
        """Wait for the call to end, and raise its error."""


@runtime_checkable
class Transport(Protocol):
    """A member of one consumer group reading one input topic, with one transactional producer.

    Reading is `read_committed`. Nothing is committed but through a transaction. All methods are called by one thread.
    """

    @property
    def group(self) -> str:
        """The name of the consumer group."""

    def poll(self, timeout: float, limit: int) -> Polled:
        """Wait up to `timeout` seconds for at most `limit` records."""

    def seek(self, partition: int, offset: int) -> None:
        """Read `partition` from `offset` on at the next poll."""

    def pause(self, partitions: Collection[int]) -> None:
        """Deliver no more records of `partitions` until they are resumed; they stay assigned."""

    def resume(self, partitions: Collection[int]) -> None:
        """Deliver records of `partitions` again after `pause`."""

    def ledgers(self, partitions: Collection[int]) -> dict[int, Committed | None]:
        """Return what is committed for `partitions` now, assigned or not; None where nothing ever was.

        A partition with an open transaction over its offset is left out: its answer is not known yet. An answer to an
        earlier question must never be given: whoever takes an old ledger for the present one publishes rows again.
        """

    def glance(self, partitions: Collection[int]) -> dict[int, Committed]:
        """Return what is committed for `partitions`, also where an open transaction is about to replace it.

        Whoever goes on from that would repeat what such a transaction does: it serves to compare, never to restore.
        """

    def read(self, topic: str, since: Mapping[int, int], committed: bool) -> Iterator[Stored]:
        """Yield the records that partitions of a topic hold now, from the offsets of `since` on, in any order of these.

        Only committed records if `committed`: then raise `AbortableError` while an open transaction hides some. Else
        all that any reader can see. What lies before the first offset of a partition is gone and is left out.
        """

    def replace_ledgers(self, texts: Mapping[int, Committed]) -> None:
        """Commit ledgers from outside the group, all at once; `GroupInUseError` as long as it has members."""

    def fetch(self, refs: Iterable[Ref]) -> dict[Ref, bytes | None]:
        """Return the records at `refs`, read outside the group; leave out those that no longer exist."""

    def facts(self, topic: str) -> TopicFacts:
        """Return the facts of a topic; raise `TransportError` if there is none of that name."""

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return the first offset and end offset of each partition of a topic."""

    def offsets_at(self, topic: str, when: float) -> dict[int, int]:
        """Return per partition the first offset with a record at or after `when` (seconds since 1970), else its end."""

    def run_in_background(self, call: Callable[[], None]) -> Pending:
        """Run `call`, a whole transaction, while the caller goes on.

        Nothing else of a transaction may be asked for meanwhile; reading may go on.
        """

    def begin(self) -> None:
        """Open a new transaction."""

    def send(self, records: Sequence[Outgoing]) -> None:
        """Add records to the open transaction."""

    def write(self, records: Sequence[Placed]) -> list[int]:
        """Add records to the open transaction, wait until the broker has taken them, and return their offsets.

        Raises `AbortableError` if one was not taken, or if nobody says where it stands.
        """

    def send_offsets(self, offsets: Mapping[int, Committed], membership: Membership) -> None:
        """Add offsets of the input to the open transaction, under the generation captured in `membership`.

        Raises `AbortableError` if that generation is over.
        """

    def commit(self) -> None:
        """Make the open transaction visible, after checking that every record of it was taken.

        Raises `AbortableError` if it was not, `OutcomeUnknownError` if nobody can say, `FencedError` if another worker
        has taken this one's place.
        """

    def renew(self) -> None:
        """Abort what is open and continue with a new producer; needed after any failed transaction."""

    def close(self) -> None:
        """Leave the group and close every connection. Nothing is committed."""
