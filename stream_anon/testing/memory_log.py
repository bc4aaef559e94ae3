"""A broker in memory: logs with open, committed and aborted records, a consumer group, transactional ids; no clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from stream_anon.kafka.transport import (
    AbortableError,
    Committed,
    FencedError,
    Membership,
    Outgoing,
    Placed,
    TopicFacts,
    TransportError,
    partition_of,
)


@dataclass(eq=False)
class Transaction:
    """One transaction: its state, and the offsets it will commit."""

    state: str = "open"
    touched: set[tuple[str, int]] = field(default_factory=set)
    offsets: dict[int, Committed] = field(default_factory=dict)


@dataclass
class Entry:
    """One offset of a log: a record, or a marker nobody reads. `gone` once compaction removed it."""

    key: bytes | None
    value: bytes | None
    timestamp: float = 0.0
    transaction: Transaction | None = None
    marker: bool = False
    gone: bool = False
    mark: bytes = b""

    def visible(self, committed_only: bool) -> bool:
        """Whether a reader gets this entry; one that wants committed records must not read beyond an open one."""
        if self.marker or self.gone:
            return False
        return not committed_only or self.transaction is None or self.transaction.state == "committed"


@dataclass
class Log:
    """One partition of a topic, as a list of entries."""

    entries: list[Entry] = field(default_factory=list)
    start: int = 0

    def stable_end(self) -> int:
        """Return the first offset of an open transaction, or the end."""
        for offset, entry in enumerate(self.entries):
            if entry.transaction is not None and entry.transaction.state == "open" and not entry.marker:
                return offset
        return len(self.entries)


class MemoryBroker:
    """Topics, one consumer group on one of them, and the state of each transactional id.

    Members take up a new generation at their next poll; until then they hold the old one, and its commits are refused.
    With `automatic` partitions are spread again whenever a member comes or goes, else only by `rebalance`.
    """

    def __init__(self, topic: str, *, partitions: int = 1, automatic: bool = True) -> None:
        self.input, self.group = topic, "group"
        self.automatic = automatic
        self.topics: dict[str, list[Log]] = {}
        self.facts: dict[str, TopicFacts] = {}
        self.committed: dict[int, Committed] = {}
        self.generation = 0
        self.assignment: dict[str, frozenset[int]] = {}
        self._ids = count(1)
        self._epochs: dict[str, int] = {}
        self._open: dict[str, Transaction] = {}
        self.create_topic(topic, partitions)

    # topics

    def create_topic(self, name: str, partitions: int = 1, cleanup_policy: str = "delete") -> None:
        """Create a topic, or one of the same name anew: with another id, and empty."""
        self.topics[name] = [Log() for _ in range(partitions)]
        self.facts[name] = TopicFacts(f"topic-{next(self._ids)}", "memory", partitions, cleanup_policy)

    def add_partition(self, name: str) -> None:
        """Give a topic one more partition."""
        old = self.facts[name]
        self.topics[name].append(Log())
        self.facts[name] = TopicFacts(old.topic_id, old.cluster_id, old.partitions + 1, old.cleanup_policy)

    def produce(self, topic: str, partition: int, value: bytes | None, timestamp: float = 0.0) -> int:
        """Append one record outside any transaction."""
        entries = self.topics[topic][partition].entries
        entries.append(Entry(None, value, timestamp))
        return len(entries) - 1

    def read(self, topic: str, committed_only: bool = True) -> list[Entry]:
        """Return what a reader of the whole topic sees now."""
        seen: list[Entry] = []
        for log in self.topics[topic]:
            end = log.stable_end() if committed_only else len(log.entries)
            seen.extend(entry for entry in log.entries[:end] if entry.visible(committed_only))
        return seen

    # the group

    def join(self, member: str) -> None:
        """Return a member comes, or comes back."""
        if member not in self.assignment:
            self.assignment[member] = frozenset()
            if self.automatic:
                self.rebalance()

    def leave(self, member: str) -> None:
        """Return a member goes, or is evicted: it is not told."""
        if self.assignment.pop(member, None) is not None and self.automatic:
            self.rebalance()

    def rebalance(self, plan: Mapping[str, frozenset[int]] | None = None) -> None:
        """Begin a new generation, with partitions by turns or as planned."""
        self.generation += 1
        members = sorted(self.assignment)
        partitions = range(self.facts[self.input].partitions)
        for i, member in enumerate(members):
            turn = frozenset(p for p in partitions if p % len(members) == i)
            self.assignment[member] = turn if plan is None else plan.get(member, frozenset())

    def unstable(self, partition: int) -> bool:
        """Whether an open transaction holds an offset of this partition."""
        return any(partition in t.offsets for t in self._open.values() if t.state == "open")

    # transactions

    def initialize(self, transactional_id: str) -> int:
        """Return a producer takes the id: what its predecessor left open is aborted, and the predecessor is fenced."""
        self.end(transactional_id, "aborted")
        self._epochs[transactional_id] = self._epochs.get(transactional_id, -1) + 1
        return self._epochs[transactional_id]

    def expire(self, transactional_id: str) -> None:
        """Return the transaction time-out: the open transaction is aborted and its producer fenced."""
        if self._open.get(transactional_id, Transaction("none")).state == "open":
            self.initialize(transactional_id)

    def transaction(self, transactional_id: str, epoch: int) -> Transaction:
        """Return the open transaction of the id's present producer; it is opened if there is none."""
        if self._epochs.get(transactional_id) != epoch:
            raise FencedError("another producer took this transactional id")
        transaction = self._open.get(transactional_id)
        if transaction is None or transaction.state != "open":
            transaction = self._open[transactional_id] = Transaction()
        return transaction

    def append(self, transaction: Transaction, records: Outgoing, now: float) -> None:
        """Append records of a transaction; whoever reads uncommitted records sees them at once."""
        topic, key, values, mark = records
        logs = self.topics.get(topic)
        if logs is None:
            raise AbortableError("no such topic")
        if max(map(len, values)) > self.facts[topic].max_message_bytes:
            raise AbortableError("record too large")
        index = partition_of(key, len(logs))
        new = [Entry(key, value, now, transaction) for value in values]
        new[0].mark = mark
        logs[index].entries.extend(new)
        transaction.touched.add((topic, index))

    def place(self, transaction: Transaction, record: Placed, now: float) -> int:
        """Append one record of a transaction to a partition of its producer's choice; return its offset."""
        logs = self.topics.get(record.topic, [])
        if record.partition >= len(logs):
            raise AbortableError("no such partition")
        if len(record.value) > self.facts[record.topic].max_message_bytes:
            raise AbortableError("record too large")
        entries = logs[record.partition].entries
        entries.append(Entry(record.key, record.value, now, transaction))
        transaction.touched.add((record.topic, record.partition))
        return len(entries) - 1

    def compact(self, topic: str) -> None:
        """Remove what compaction would: aborted records, and committed ones that a later one of their key follows."""
        for log in self.topics[topic]:
            latest: set[bytes | None] = set()
            for entry in reversed(log.entries[: log.stable_end()]):
                if entry.visible(committed_only=True) and entry.key not in latest:
                    latest.add(entry.key)
                else:
                    entry.gone = True

    def hold_offsets(self, transaction: Transaction, offsets: Mapping[int, Committed], membership: Membership) -> None:
        """Add offsets to a transaction. Like a real broker, this checks the generation and not who owns what."""
        stale = membership.generation != self.generation or membership.member not in self.assignment
        if membership.generation >= 0 and stale:
            raise AbortableError("the group's generation is over")
        if any(len(c.metadata) > 4096 for c in offsets.values()):
            raise FencedError("offset metadata too large")
        transaction.offsets.update(offsets)

    def end(self, transactional_id: str, state: str) -> None:
        """Commit or abort what is open under an id, and write the markers."""
        transaction = self._open.get(transactional_id)
        if transaction is None or transaction.state != "open":
            return
        transaction.state = state
        for topic, index in sorted(transaction.touched):
            self.topics[topic][index].entries.append(Entry(None, None, marker=True))
        if state == "committed":
            self.committed.update(transaction.offsets)

    def logs(self, topic: str) -> list[Log]:
        """Return the partitions of a topic."""
        if topic not in self.topics:
            raise TransportError(f"there is no topic {topic!r}: create it first")
        return self.topics[topic]
