"""What the worker needs of a log broker, as one small protocol; it knows no client library and no record's meaning."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from stream_anon.errors import StreamAnonError

Ref = tuple[int, int]
"""Where a record of the input stands: (partition, offset)."""


LEDGER_TOO_LARGE = (
    "the broker does not take the ledgers of a transaction: set max.message.bytes of __consumer_offsets, or the "
    "broker's message.max.bytes, to 4,200 per partition of the input or more"
)


class TransportError(StreamAnonError):
    """The broker or the connection failed; no message holds a record's content."""


class AbortableError(TransportError):
    """This transaction cannot be committed, but the worker may abort it and go on."""


class OutcomeUnknownError(TransportError):
    """A commit was asked for and no answer came: only the ledgers, read after `renew`, tell what happened."""


class FencedError(TransportError):
    """Another worker took this one's transactional id, or the client cannot go on: the process has to end."""


class GroupInUseError(TransportError):
    """The consumer group has members, so nobody from outside may commit for it."""

    def __init__(self) -> None:
        super().__init__(
            "the consumer group has members: end all its workers, wait for the session time-out of those that were "
            "killed, and ask again"
        )


class NotAllowedError(TransportError):
    """The broker keeps something from this user: `operation` is what has to be allowed, on `what`."""

    def __init__(self, what: str, operation: str) -> None:
        self.operation = operation
        super().__init__(f"no permission: allow {operation} on {what}")


class Slice(NamedTuple):
    """What one poll brought of one partition, column by column. Keys and headers of the input are left behind."""

    partition: int
    offsets: list[int]
    timestamps: list[float]
    values: list[bytes | None]


@dataclass(frozen=True, slots=True)
class Membership:
    """The group's generation and what it assigned to this member, captured together; `token` is the client's own."""

    generation: int
    member: str
    partitions: frozenset[int]
    token: object = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Polled:
    """One poll: records, the next offset to be read per partition, and the membership if it is stable, else None.

    `assigned` are partitions given to this member since the last poll. They stay paused, at no meaningful position,
    until the worker seeks and resumes them. `out_of_range` are those whose position the log does not hold. `ends` are
    the end offsets the client last heard of. `over` tells that a membership captured before is of no more use; a client
    that cannot know leaves it to the broker to refuse it.
    """

    slices: tuple[Slice, ...]
    positions: Mapping[int, int]
    membership: Membership | None
    assigned: frozenset[int] = frozenset()
    out_of_range: frozenset[int] = frozenset()
    ends: Mapping[int, int] = field(default_factory=dict)
    over: bool = False


class Committed(NamedTuple):
    """A committed offset and the text that was committed with it."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What tells one topic from another of the same name, and how it is kept."""

    topic_id: str
    cluster_id: str
    partitions: int
    cleanup_policy: str = "delete"
    max_message_bytes: int = 1_048_588

    def refuse_an_old_broker(self) -> None:
        """Brokers that tell no ids of topics do not know the requests either by which a worker's successor is safe."""
        if not self.topic_id.strip("0-") or self.topic_id == "None":
            raise StreamAnonError("the broker tells no ids of topics: Kafka 2.8 or later is needed")

    def refuse_compaction(self, topic: str) -> None:
        """An output that keeps the last record per key keeps one of each group: the key is the group."""
        if "compact" in self.cleanup_policy:
            raise StreamAnonError(
                f"the output topic {topic} is compacted, which would keep one record of each group: "
                "set its cleanup.policy to delete"
            )


class Outgoing(NamedTuple):
    """Records to be sent under one key, in their order. Their timestamp is the time of sending."""

    topic: str
    key: bytes
    values: Sequence[bytes]


class Pending(Protocol):
    """Something that is done while its caller goes on."""

    def done(self) -> bool:
        """Whether it has come to an end."""

    def result(self) -> None:
        """Wait for its end, and raise its error."""


@runtime_checkable
class Transport(Protocol):
    """One member of one consumer group reading one input topic, with one transactional producer.

    Reading is `read_committed`. Nothing is committed but through a transaction. All methods are called by one thread.
    """

    def poll(self, timeout: float, limit: int) -> Polled:
        """Wait up to `timeout` seconds for at most `limit` records."""

    def seek(self, partition: int, offset: int) -> None:
        """Read `partition` from `offset` on at the next poll."""

    def pause(self, partitions: Collection[int]) -> None:
        """Bring no more records of `partitions` until they are resumed; they stay assigned."""

    def resume(self, partitions: Collection[int]) -> None:
        """Undo `pause`."""

    def ledgers(self, partitions: Collection[int]) -> dict[int, Committed | None]:
        """What is committed for `partitions`, assigned or not, at the time of asking; None where nothing ever was.

        A partition with an open transaction over its offset is left out: its answer is not known yet. An answer to an
        earlier question must never be given: whoever takes an old ledger for the present one publishes rows again.
        """

    def replace_ledgers(self, texts: Mapping[int, Committed]) -> None:
        """Commit ledgers from outside the group, all at once; `GroupInUseError` as long as it has members."""

    def fetch(self, refs: Iterable[Ref]) -> dict[Ref, bytes | None]:
        """The records at `refs`, read outside the group; those that no longer exist are left out."""

    def facts(self, topic: str) -> TopicFacts:
        """The facts of a topic; `TransportError` if there is none of that name."""

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """First offset and end offset of each partition of a topic."""

    def offsets_at(self, topic: str, when: float) -> dict[int, int]:
        """Per partition the first offset with a record at or after `when`, seconds since 1970; its end if none is."""

    def run_in_background(self, call: Callable[[], None]) -> Pending:
        """Do `call`, a whole transaction, while the caller goes on.

        Nothing else of a transaction may be asked for meanwhile; reading may go on.
        """

    def begin(self) -> None:
        """Open a transaction."""

    def send(self, records: Sequence[Outgoing]) -> None:
        """Add records to the open transaction."""

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
