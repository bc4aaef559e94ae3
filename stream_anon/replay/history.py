"""A topic's past as numbered rows in a reproducible order: by time, then partition, then offset."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

import numpy as np

from stream_anon.core.decode import Payload, Reject
from stream_anon.errors import StreamAnonError
from stream_anon.formats.tables import AT_ONCE, Part
from stream_anon.formats.text.lines import LINE_LIMIT
from stream_anon.kafka.transport import Ref, Transport, TransportError
from stream_anon.replay.offset_range import OffsetRange

AHEAD = 20_000
"""Rows of one partition that wait for slower ones before its reading pauses."""

PATIENCE = 60.0
"""Seconds without any progress after which reading is given up."""

_Row = tuple[float, int, int, bytes | None]


class TopicHistory:
    """A reader of an offset range of a topic, once. It commits nothing and has a group of its own.

    A row's time is its record's, but not before that of the record ahead of it in its partition. A row is handed out
    when no partition can bring an earlier one. Parts have a fixed size, so that a second reading pushes the same rows
    together.
    """

    def __init__(self, transport: Transport, topic: str, offset_range: OffsetRange) -> None:
        self._transport, self._topic = transport, topic
        self._end = {p: end for p, (_, end) in offset_range.items()}
        self._next = {p: first for p, (first, _) in offset_range.items()}
        self._clock = dict.fromkeys(offset_range, -math.inf)
        self._open = {p for p, (first, end) in offset_range.items() if first < end}
        self._held: Counter[int] = Counter()
        self._total = max(1, sum(end - first for first, end in offset_range.values()))
        self._first, self._refs = 1, np.empty((0, 2), dtype=np.int64)

    def parts(self) -> Iterator[Part]:
        """Yield the rows, some at a time; `reached` goes from 0 to 1."""
        waiting: list[_Row] = []
        for row in self._merged():
            waiting.append(row)
            if len(waiting) == AT_ONCE:
                yield self._part(waiting)
                waiting = []
        if waiting:
            yield self._part(waiting)

    def place(self, number: int) -> dict[str, Any]:
        """Return the topic, partition and offset of a row of the part yielded last."""
        partition, offset = self._refs[number - self._first].tolist()
        return {"topic": self._topic, "partition": partition, "offset": offset}

    def _part(self, rows: list[_Row]) -> Part:
        self._first += len(self._refs)
        refs: list[Ref] = [(partition, offset) for _, partition, offset, _ in rows]
        self._refs = np.array(refs, dtype=np.int64)
        payloads: list[Payload] = [
            Reject.TOO_LARGE if value is not None and len(value) > LINE_LIMIT else value for *_, value in rows
        ]
        left = sum(self._end[p] - self._next[p] for p in self._open)
        reached = max(0.0, 1 - left / self._total)
        numbers = np.arange(self._first, self._first + len(rows))
        times = np.array([row[0] for row in rows])
        return Part(self._first, numbers, payloads, reached, refs=self._refs, times=times)

    def _merged(self) -> Iterator[_Row]:
        heap: list[_Row] = []
        while self._open or heap:
            if self._open:
                for row in self._read():
                    heappush(heap, row)
            horizon = min(((self._clock[p], p) for p in self._open), default=(math.inf, 0))
            while heap and heap[0][:2] <= horizon:
                row = heappop(heap)
                self._held[row[1]] -= 1
                yield row
            self._transport.pause([p for p in self._next if p not in self._open or self._held[p] > AHEAD])
            self._transport.resume([p for p in self._open if self._held[p] < AHEAD / 2])

    def _read(self) -> Iterator[_Row]:
        """Poll until there is progress within the range."""
        before, until = dict(self._next), time.monotonic() + PATIENCE
        while self._next == before:
            if time.monotonic() > until:
                raise TransportError(f"{self._topic}: nothing could be read for {PATIENCE:.0f} seconds")
            polled = self._transport.poll(0.2, AT_ONCE)
            if polled.out_of_range & self._open:
                raise StreamAnonError(f"{self._topic}: records of the range are gone: retention removed them")
            for part in polled.slices:
                p = part.partition
                for offset, when, value in zip(part.offsets, part.timestamps, part.values, strict=True):
                    if self._next.get(p, math.inf) <= offset < self._end[p]:
                        self._clock[p] = max(self._clock[p], when)
                        self._next[p] = offset + 1
                        self._held[p] += 1
                        yield self._clock[p], p, offset, value
            for p in self._next.keys() & polled.positions.keys() - polled.assigned:
                self._next[p] = max(self._next[p], polled.positions[p])
            for p in polled.assigned & self._open:
                self._transport.seek(p, self._next[p])
                self._transport.resume([p])
            self._open = {p for p in self._open if self._next[p] < self._end[p]}
