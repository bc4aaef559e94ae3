"""Check whether a Kafka cluster is fit for a worker, question by question; creates and publishes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from stream_anon.kafka.new_topics import NO_ANSWER
from stream_anon.kafka.transport import AbortableError, NotAllowedError, TopicFacts, TransportError

_METADATA = 4_096
_PATIENCE = 15.0  # seconds for what a new broker has to make first
LONGEST_TRANSACTION = 30.0
"""Seconds after which a broker aborts what a dead worker left open, by default."""

STAYS_OPEN = "if it stays: kafka-transactions.sh find-hanging lists it, kafka-transactions.sh abort ends it"
_LOOK = "look at the broker's log and ask again"


class BrokerProbe(Protocol):
    """The questions a client can ask a broker; each raises `TransportError` with the client's name of the error.

    `NotAllowedError` where the broker keeps the answer, or what was asked for, from this user.
    """

    def cluster(self) -> tuple[int, str]:
        """Return how many nodes answer, and the cluster's id."""

    def facts(self, topic: str) -> TopicFacts:
        """Return the facts of a topic."""

    def allowed(self, topic: str) -> Collection[str]:
        """Return what may be done with a topic, by Kafka's names; empty if the broker does not say."""

    def group_state(self) -> str | None:
        """Return the state of the group, None if it was never used. `AbortableError`: ask again. Needs READ."""

    def transact(self, transactional_id: str) -> None:
        """Begin and abort a transaction."""

    def metadata_limit(self) -> int | None:
        """Return the largest size of metadata in bytes, None where it may not be read."""

    def newest(self, topic: str) -> float:
        """Return the time of the newest record, in seconds since 1970, or 0."""

    def ends(self, topic: str) -> dict[int, int]:
        """Return the end offset of each partition, of committed records."""

    def held_back(self, topic: str) -> dict[int, int]:
        """Return the partitions with records behind an open transaction, and the offset where that begins."""

    def close(self) -> None:
        """Close all connections that were opened."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer of the broker; `remedy` says what to do when it is not good."""

    question: str
    good: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Doctor:
    """An examination of one broker for one group and its topics."""

    broker: BrokerProbe
    group: str
    input: str
    output: str
    dead_letter: str | None
    ledger: str | None = None

    def examine(self) -> Iterator[Finding]:
        """Yield all findings, in the order in which trouble would show; end early if the broker does not answer."""
        try:
            nodes, cluster = self.broker.cluster()
        except TransportError as error:
            yield Finding("broker", False, str(error), NO_ANSWER)
            return
        yield Finding("broker", True, f"{nodes} node(s), cluster {cluster}")
        asks: list[Callable[[], Finding]] = [
            lambda: self._topic("input topic", self.input, "READ"),
            lambda: self._topic("output topic", self.output, "WRITE", "READ"),
        ]
        if self.dead_letter is not None:
            dead = self.dead_letter
            asks.append(lambda: self._topic("dead-letter topic", dead, "WRITE"))
        if self.ledger is not None:
            ledger = self.ledger
            asks.append(lambda: self._topic("ledger topic", ledger, "WRITE", "READ"))
        for ask in [*asks, self._group, self._transactions, self._open, self._metadata, self._clock]:
            yield ask()

    def _topic(self, question: str, name: str, *operations: str) -> Finding:
        try:
            facts, allowed = self.broker.facts(name), self.broker.allowed(name)
        except NotAllowedError as error:
            lacking = operations[0] if error.operation == "DESCRIBE" else error.operation  # which includes DESCRIBE
            return _forbidden(question, lacking, f"topic {name}")
        except TransportError:
            return Finding(
                question, False, f"{name} is not there", f"create it: kafka-topics.sh --create --topic {name}"
            )
        if question == "output topic" and "compact" in facts.cleanup_policy:
            remedy = "set cleanup.policy=delete: compaction keeps one record per group"
            return Finding(question, False, f"{name} is compacted", remedy)
        for operation in operations if allowed else ():
            if operation not in allowed:
                return _forbidden(question, operation, f"topic {name}")
        return Finding(question, True, f"{name}, {facts.partitions} partition(s), {facts.cleanup_policy}")

    def _group(self) -> Finding:
        """Check the group; a new broker takes some seconds to create the topic in which groups are kept."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return Finding("group", True, f"{self.group}, {self.broker.group_state() or 'not used yet'}")
            except NotAllowedError as error:
                return _forbidden("group", error.operation, f"group {self.group}")
            except AbortableError as error:
                if time.monotonic() > until:
                    return Finding("group", False, str(error), "wait for the group coordinator and ask again")
                time.sleep(0.5)
            except TransportError as error:
                return Finding("group", False, str(error), _LOOK)

    def _transactions(self) -> Finding:
        began = time.monotonic()
        try:
            self.broker.transact(f"stream-anon-{self.group}-doctor")
        except NotAllowedError as error:
            return _forbidden(
                "transactions", error.operation, f"transactional ids that begin with stream-anon-{self.group}-"
            )
        except TransportError as error:
            return Finding("transactions", False, str(error), _LOOK)
        return Finding("transactions", True, f"begun and aborted in {(time.monotonic() - began) * 1000:.0f} ms")

    def _open(self) -> Finding:
        """Check for hanging transactions: they hide all later records, and no worker may take over what they hold."""
        question, until = "open transactions", time.monotonic() + LONGEST_TRANSACTION
        try:
            stuck = self._held_back()
            while stuck and time.monotonic() < until:
                time.sleep(0.5)
                stuck &= self._held_back()
        except TransportError:
            return Finding(question, True, "not known")  # the topic's own line says so
        if not stuck:
            return Finding(question, True, "none stays open in the output")
        where = ", ".join(f"{topic}, partition {number}, from offset {at}" for topic, number, at in sorted(stuck))
        return Finding(question, False, f"one stays open: {where}", STAYS_OPEN)

    def _held_back(self) -> set[tuple[str, int, int]]:
        topics = filter(None, (self.output, self.dead_letter, self.ledger))
        return {(topic, number, at) for topic in topics for number, at in self.broker.held_back(topic).items()}

    def _metadata(self) -> Finding:
        limit = self.broker.metadata_limit()
        if limit is None:
            return Finding("metadata limit", True, f"may not be read; {_METADATA} is the default and enough")
        good = limit >= _METADATA
        return Finding("metadata limit", good, f"{limit} bytes", f"set offset.metadata.max.bytes to {_METADATA}")

    def _clock(self) -> Finding:
        """Check that the newest record of the input does not come from the future."""
        try:
            newest = self.broker.newest(self.input)
        except TransportError:
            newest = 0.0  # the topic's own line says so
        if not newest:
            return Finding("clock", True, "the input is empty: nothing to compare with")
        ahead = newest - time.time()
        remedy = "set the clocks by NTP: ages in the metrics will be wrong; the delay bound does not depend on them"
        return Finding("clock", ahead < 5, f"the newest record is {-ahead:.1f} s old", remedy)


def _forbidden(question: str, operation: str, what: str) -> Finding:
    return Finding(question, False, f"no permission to {operation}", f"allow {operation} on {what}")
