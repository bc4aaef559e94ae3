"""The transport over a broker in memory, for tests and trials: same contract as a real one, and failures on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from stream_anon.kafka.transport import (
    AbortableError,
    Committed,
    GroupInUseError,
    Membership,
    OutcomeUnknownError,
    Outgoing,
    Pending,
    Placed,
    Polled,
    Ref,
    Slice,
    Stored,
    TopicFacts,
    TransportError,
)
from stream_anon.testing.memory_log import Log, MemoryBroker


class _UnderWay:
    """A call that is made by whoever waits for it, or at once."""

    def __init__(self, call: Callable[[], None], *, at_once: bool) -> None:
        self._call, self._made = call, at_once
        self._error: TransportError | None = None
        if at_once:
            try:
                call()
            except TransportError as error:
                self._error = error

    def done(self) -> bool:
        """Whether it was made."""
        return self._made

    def result(self) -> None:
        """Make it, unless it was made; raise its error."""
        if not self._made:
            self._call()
        elif self._error is not None:
            raise self._error


class MemoryTransport:
    """One member of the group of a `MemoryBroker`.

    `before` is called with the name of each operation that reaches the broker: whoever drives several workers can
    stop one there, or end it by raising. `lose` makes the next commit lose its request or its response.
    """

    def __init__(
        self,
        broker: MemoryBroker,
        member: str,
        transactional_id: str | None = None,
        before: Callable[[str], None] = lambda operation: None,
        *,
        eager: bool = False,
    ) -> None:
        self.broker = broker
        self.eager = eager
        self.member = member
        self.lose: str | None = None
        self._id = transactional_id or member
        self._before = before
        self._generation = -1
        self._partitions: frozenset[int] = frozenset()
        self._positions: dict[int, int] = {}
        self._paused: set[int] = set()
        self._epoch: int | None = None
        self._topic = broker.input

    @property
    def group(self) -> str:
        """The name of the broker's only group."""
        return self.broker.group

    def poll(self, timeout: float, limit: int) -> Polled:
        """Take up the present generation, then read."""
        self._before("poll")
        broker = self.broker
        broker.join(self.member)
        assigned: frozenset[int] = frozenset()
        if self._generation != broker.generation:
            now = broker.assignment[self.member]
            assigned = now - self._partitions
            self._generation, self._partitions = broker.generation, now
            for partition in assigned:
                self._positions[partition] = 0
            self._paused = (self._paused & now) | assigned
        out_of_range = set()
        slices = []
        for partition in sorted(self._partitions - self._paused):
            log, at = broker.logs(self._topic)[partition], self._positions[partition]
            if not log.start <= at <= len(log.entries):
                out_of_range.add(partition)
                continue
            part = self._read(log, partition, at, limit)
            limit -= len(part.offsets)
            if part.offsets:
                slices.append(part)
        return Polled(
            tuple(slices),
            {p: self._positions[p] for p in self._partitions},
            Membership(self._generation, self.member, self._partitions, None),
            assigned,
            frozenset(out_of_range),
            {p: len(broker.logs(self._topic)[p].entries) for p in self._partitions},
        )

    def _read(self, log: Log, partition: int, at: int, limit: int) -> Slice:
        part = Slice(partition, [], [], [])
        end = log.stable_end()
        while at < end and len(part.offsets) < limit:
            entry = log.entries[at]
            if entry.visible(committed_only=True):
                part.offsets.append(at)
                part.timestamps.append(entry.timestamp)
                part.values.append(entry.value)
            at += 1
        self._positions[partition] = at
        return part

    def seek(self, partition: int, offset: int) -> None:
        """Read from `offset` on."""
        self._positions[partition] = offset

    def pause(self, partitions: Collection[int]) -> None:
        """Stop reading some partitions."""
        self._paused.update(partitions)

    def resume(self, partitions: Collection[int]) -> None:
        """Read some partitions again."""
        self._paused.difference_update(partitions)

    def ledgers(self, partitions: Collection[int]) -> dict[int, Committed | None]:
        """Return what is committed and settled."""
        self._before("ledgers")
        return {p: self.broker.committed.get(p) for p in partitions if not self.broker.unstable(p)}

    def glance(self, partitions: Collection[int]) -> dict[int, Committed]:
        """Return what is committed, settled or not."""
        self._before("glance")
        return {p: self.broker.committed[p] for p in partitions if p in self.broker.committed}

    def read(self, topic: str, since: Mapping[int, int], committed: bool) -> Iterator[Stored]:
        """Yield the records of some partitions from some offsets on."""
        self._before("read")
        logs = self.broker.logs(topic)
        for partition, first in since.items():
            log = logs[partition]
            if committed and log.stable_end() < len(log.entries):
                raise AbortableError("an open transaction hides records")
            for offset in range(max(log.start, first), len(log.entries)):
                entry = log.entries[offset]
                if entry.visible(committed):
                    yield Stored(partition, offset, entry.key, entry.value, entry.mark)

    def replace_ledgers(self, texts: Mapping[int, Committed]) -> None:
        """Commit outside the group."""
        self._before("replace_ledgers")
        if self.broker.assignment:
            raise GroupInUseError
        self.broker.committed.update(texts)

    def fetch(self, refs: Iterable[Ref]) -> dict[Ref, bytes | None]:
        """Return records by their offsets."""
        self._before("fetch")
        found: dict[Ref, bytes | None] = {}
        logs = self.broker.logs(self._topic)
        for partition, offset in refs:
            log = logs[partition]
            if log.start <= offset < log.stable_end() and log.entries[offset].visible(committed_only=True):
                found[partition, offset] = log.entries[offset].value
        return found

    def facts(self, topic: str) -> TopicFacts:
        """Return the facts of a topic."""
        self.broker.logs(topic)
        return self.broker.facts[topic]

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """First and end offsets."""
        return {p: (log.start, len(log.entries)) for p, log in enumerate(self.broker.logs(topic))}

    def offsets_at(self, topic: str, when: float) -> dict[int, int]:
        """Return the first entries at or after a time."""
        return {
            p: next((i for i, entry in enumerate(log.entries) if entry.timestamp >= when), len(log.entries))
            for p, log in enumerate(self.broker.logs(topic))
        }

    def run_in_background(self, call: Callable[[], None]) -> Pending:
        """All of it happens when it is waited for, or, if this transport is `eager`, at once."""
        return _UnderWay(call, at_once=self.eager)

    def begin(self) -> None:
        """Open a new transaction."""
        self._before("begin")
        if self._epoch is None:
            self._epoch = self.broker.initialize(self._id)
        self.broker.transaction(self._id, self._epoch)

    def send(self, records: Sequence[Outgoing]) -> None:
        """Append one record after the other, so that a worker can end between any two."""
        for topic, key, values, mark in records:
            for number, value in enumerate(values):
                self._before("send")
                one = Outgoing(topic, key, [value], b"" if number else mark)
                self.broker.append(self.broker.transaction(self._id, self._current()), one, 0.0)

    def write(self, records: Sequence[Placed]) -> list[int]:
        """Append one record after the other to partitions of the caller's choice."""
        offsets = []
        for record in records:
            self._before("write")
            offsets.append(self.broker.place(self.broker.transaction(self._id, self._current()), record, 0.0))
        return offsets

    def send_offsets(self, offsets: Mapping[int, Committed], membership: Membership) -> None:
        """Hold offsets in the transaction."""
        self._before("send_offsets")
        self.broker.hold_offsets(self.broker.transaction(self._id, self._current()), offsets, membership)

    def commit(self) -> None:
        """Commit, unless the request or the response is to be lost."""
        self._before("commit")
        self.broker.transaction(self._id, self._current())
        lose, self.lose = self.lose, None
        if lose != "request":
            self.broker.end(self._id, "committed")
        if lose is not None:
            raise OutcomeUnknownError("no answer to the commit")

    def renew(self) -> None:
        """Start a new producer under the same id."""
        self._before("renew")
        self._epoch = self.broker.initialize(self._id)

    def close(self) -> None:
        """Leave the consumer group."""
        self.broker.leave(self.member)

    def _current(self) -> int:
        if self._epoch is None:
            raise AbortableError("no transaction is open")
        return self._epoch
