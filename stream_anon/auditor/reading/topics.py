"""Read published topics as chunks, from the beginning, and check keys, headers and times on the way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from stream_anon.auditor.findings import Findings
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.raw.original import Original, json_columns
from stream_anon.auditor.reading.chunks import AT_ONCE, ENVELOPE, Chunk
from stream_anon.auditor.reading.lines import LineReader, key_of
from stream_anon.auditor.reading.schemas import Schemas
from stream_anon.errors import StreamAnonError

_POLL = 200
"""Milliseconds: how long one poll waits, and so how soon a stop is noticed."""

_STALL = 30.0
"""Seconds without a record after which the end of a topic is taken as unreachable."""

_MARK, _LONGEST_MARK = "stream-anon", 64 * 1024

Messages = list[Any]


class TopicError(StreamAnonError):
    """The broker or the topic cannot be read."""


class Topic:
    """A reader of all partitions of a topic, without a consumer group or commits; `options` are the client's own."""

    def __init__(self, bootstrap: str, name: str, options: Mapping[str, Any], isolation: str) -> None:
        own = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
        self._name = name
        try:
            self._consumer = KafkaConsumer(
                **{**options, **own, "bootstrap_servers": bootstrap, "isolation_level": isolation}
            )
            numbers = self._consumer.partitions_for_topic(name)
        except (KafkaError, OSError) as error:
            raise TopicError(f"{bootstrap}: the broker cannot be reached ({type(error).__name__})") from None
        if not numbers:
            raise TopicError(f"there is no topic {name!r} on {bootstrap}")
        self._partitions = [TopicPartition(name, number) for number in sorted(numbers)]
        self._consumer.assign(self._partitions)
        self._consumer.seek_to_beginning(*self._partitions)

    def close(self) -> None:
        """Close the connection to the broker."""
        self._consumer.close()

    def to_the_end(self) -> Iterator[Messages]:
        """Yield everything the topic holds now, some records at a time."""
        ends = self._consumer.end_offsets(self._partitions)
        waiting, last = [], time.monotonic()
        while any(self._consumer.position(partition) < end for partition, end in ends.items()):
            got = self._poll()
            waiting += got
            last = time.monotonic() if got else last
            if len(waiting) >= AT_ONCE:
                yield waiting
                waiting = []
            if time.monotonic() - last > _STALL:
                raise TopicError(f"{self._name}: the end of the topic was not reached: a transaction is open")
        if waiting:
            yield waiting

    def follow(self, stopped: Callable[[], bool], idle: float | None) -> Iterator[Messages]:
        """Yield everything from the beginning until `stopped`, or until nothing came for `idle` seconds."""
        last = time.monotonic()
        while not stopped():
            if got := self._poll():
                last = time.monotonic()
                yield got
            elif idle is not None and time.monotonic() - last > idle:
                return

    def _poll(self) -> Messages:
        try:
            found = self._consumer.poll(timeout_ms=_POLL, max_records=AT_ONCE)
        except (KafkaError, OSError) as error:
            raise TopicError(f"{self._name}: reading failed ({type(error).__name__})") from None
        return [message for messages in found.values() for message in messages]


class TopicReader:
    """A converter of Kafka messages into chunks."""

    def __init__(self, rules: Rules | None, findings: Findings) -> None:
        self._lines, self._findings = LineReader(rules, findings), findings
        self._schemas = Schemas.of(rules)

    def chunk(self, messages: Messages) -> Chunk:
        """Return the records of these messages; a key must be the group's id, and headers say nothing but a mark."""
        values = [self._schemas.published(message.value or b"null") for message in messages]
        for message, value in zip(messages, values, strict=True):
            key = message.key or b""
            if len(key) != 16 or b'"group":"%b"' % key not in value:
                self._findings.note("key", [self._group(value)])
            if not _only_a_mark(message.headers or []):
                self._findings.note("header", [self._group(value)])
        times = np.array([message.timestamp for message in messages], dtype=np.int64)
        return self._lines.read(values, times)

    def _group(self, value: bytes) -> int:
        columns, _ = json_columns([value])
        return key_of(columns.get(f"{ENVELOPE}.group", [""])[0])


def _only_a_mark(headers: list[tuple[str, bytes]]) -> bool:
    """Tell whether headers are none, or the sealed mark by which workers know each other's ledgers, and no more."""
    return not headers or (len(headers) == 1 and headers[0][0] == _MARK and len(headers[0][1] or b"") <= _LONGEST_MARK)


def read_raw_topic(topic: Topic, rules: Rules) -> Original:
    """Read the raw records of an input topic, with their times."""
    original, schemas = Original(rules), Schemas.of(rules)
    for messages in topic.to_the_end():
        times = np.array([message.timestamp for message in messages], dtype=np.int64)
        values = [None if message.value is None else schemas.raw(message.value) for message in messages]
        original.add(json_columns(values)[0], len(messages), times)
    return original.finish()
