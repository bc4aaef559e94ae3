"""Write groups to a topic exactly once: each transaction announces the next groups, and a new run skips old ones."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

import msgspec

from stream_anon.core.gate import Group
from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import (
    AbortableError,
    Committed,
    FencedError,
    Membership,
    OutcomeUnknownError,
    Outgoing,
    Transport,
    TransportError,
)
from stream_anon.replay.offset_range import OffsetRange
from stream_anon.replay.progress import ReplayProgress, ReplayProgressError
from stream_anon.worker.ledger.seal import derive

AT_ONCE = 2_000
"""Records of a transaction, unless one group has more."""

HOME = 0
"""The partition of the output beside whose offset the progress is stored."""

PATIENCE = 30.0
"""Seconds to wait for the place of a predecessor, or for the end of its transaction."""

_TRIES = 5
_ROOM = 512  # bytes of a batch that are not the record's


class TopicWriter:
    """A `RecordWriter` into a topic that makes a run repeatable.

    Every run makes the same groups in the same order. The progress, committed with the records, counts
    those published and those announced, with digests of their bytes. So a run that goes on
    1. skips what is published, if its bytes are the same,  2. publishes what was announced, if its bytes are the same,
    and nothing at all if they are not: whatever a dead run showed of an open transaction was announced before,
    3. announces the next groups in the same transaction, and so on.
    """

    def __init__(self, transport: Transport, topic: str, run: str, key: bytes) -> None:
        self._transport, self._topic, self._run = transport, topic, run
        self._progress = ReplayProgress(run)
        self._text: Committed | None = None
        self._digest = hashlib.blake2b(key=derive(key, b"replayed bytes"), digest_size=16)
        self._count = 0
        self._largest = 0
        self._announced: list[tuple[str, list[bytes]]] = []
        self._fresh: list[tuple[str, list[bytes]]] = []

    @property
    def done(self) -> bool:
        """Whether everything is published."""
        return self._progress.done

    def open(self) -> tuple[OffsetRange | None, bool]:
        """Take over from an earlier run; return its offset range and whether there was one.

        Without one the topic must be empty.

        1. Refuse a compacted topic.  2. End what a predecessor left open.  3. Read its progress.
        """
        facts = self._transport.facts(self._topic)
        if "compact" in facts.cleanup_policy:
            raise StreamAnonError(
                f"the output topic {self._topic} is compacted, which would keep one record of each group: "
                "set its cleanup.policy to delete"
            )
        self._largest = facts.max_message_bytes - _ROOM
        self._transport.renew()
        self._text = self._stored()
        if self._text is not None:
            self._progress = ReplayProgress.of(self._text)
            self._progress.require(self._run, f"{self._topic} is not for this one: name another topic")
            self._begin(self._progress)
            return self._progress.offset_range, True
        if any(end > 0 for _, end in self._transport.bounds(self._topic).values()):
            raise ReplayProgressError(f"the output topic {self._topic} was used by something else: name an empty topic")
        return None, False

    def claim(self, offset_range: OffsetRange | None) -> None:
        """Claim the topic for this run before anything is sent."""
        progress = ReplayProgress(self._run, offset_range)
        self._begin(progress)
        self._commit(progress, [])

    def _begin(self, progress: ReplayProgress) -> None:
        self._digest.update(msgspec.json.encode((progress.run, progress.offset_range)))

    def write(self, groups: Sequence[Group]) -> None:
        """Take groups; publish those announced when there are enough to announce next."""
        for group in groups:
            records = group.encoded()
            for record in records:
                if len(record) > self._largest:
                    raise StreamAnonError(
                        f"a record of {len(record):,} bytes is too large for {self._topic}: raise its max.message.bytes"
                    )
                self._digest.update(len(record).to_bytes(4, "big") + record)
            self._count += 1
            if self._count > self._progress.announced:
                self._fresh.append((group.id, records))
            elif self._count > self._progress.published:
                self._announced.append((group.id, records))
            self._compare()
            if sum(len(records) for _, records in self._fresh) >= AT_ONCE:
                self._advance()

    def close(self) -> None:
        """Announce and publish the rest."""
        if self._count < self._progress.announced:
            raise self._differs()
        if self._fresh:
            self._advance()
        if not self._progress.done:
            self._advance(done=True)

    def _compare(self) -> None:
        for count, mark in (
            (self._progress.published, self._progress.published_mark),
            (self._progress.announced, self._progress.announced_mark),
        ):
            if self._count == count and self._mark() != mark:
                raise self._differs()

    def _differs(self) -> ReplayProgressError:
        return ReplayProgressError(
            f"{self._topic}: an earlier run of this replay made other groups: its records were compacted or deleted, "
            "or its file or this program was changed; nothing more is published; use a new topic"
        )

    def _mark(self) -> str:
        return self._digest.copy().hexdigest()

    def _advance(self, done: bool = False) -> None:
        """Publish what is announced and announce the new groups, in one transaction."""
        progress = ReplayProgress(
            self._run,
            self._progress.offset_range,
            self._progress.announced,
            self._progress.announced_mark,
            self._count,
            self._mark(),
            done,
        )
        records = [
            Outgoing(self._topic, identity.encode(), records)
            for identity, records in sorted(self._announced)  # ids are keyed, so their order reveals nothing
        ]
        self._commit(progress, records)
        self._announced, self._fresh = self._fresh, []

    def _commit(self, progress: ReplayProgress, records: list[Outgoing]) -> None:
        """Commit, and retry if it fails: what is sent twice is identical, and one of the two is aborted."""
        after = progress.committed()
        for last in (False,) * (_TRIES - 1) + (True,):
            try:
                membership = self._join()
                self._transport.begin()
                self._transport.send(records)
                self._transport.send_offsets({HOME: after}, membership)
                self._transport.commit()
                break
            except (AbortableError, OutcomeUnknownError):
                self._transport.renew()
                stored = self._stored()
                if stored == after:
                    break
                if stored != self._text:
                    raise FencedError(f"another replay into {self._topic} has begun") from None
                if last:
                    raise
        self._progress, self._text = progress, after

    def _stored(self) -> Committed | None:
        """Return the committed progress, after a predecessor's open transaction has ended."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = self._transport.ledgers([HOME])
            if HOME in found:
                return found[HOME]
        raise TransportError(f"{self._topic}: a transaction of another replay stays open: try again")

    def _join(self) -> Membership:
        """Return the membership under which offsets are committed; rejoin the group after long computation."""
        until, wait = time.monotonic() + PATIENCE, 0.0
        while time.monotonic() < until:
            found = self._transport.poll(wait, 1).membership
            if found is not None and HOME in found.partitions:
                return found
            wait = 0.1
        raise TransportError(f"another replay into {self._topic} is running: end it first")
