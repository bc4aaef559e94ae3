"""A recording through a stream algorithm on a simulated clock: the recording's own times decide what is due when."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.decode import Decoder, Reject, Rejection
from stream_anon.core.encode import Encoder
from stream_anon.core.group import Group
from stream_anon.core.hierarchy import Floats
from stream_anon.core.schema import Schema
from stream_anon.io.sheets import Sheet
from stream_anon.io.tables import Part
from stream_anon.runtime.pipeline import Pipeline

MILLISECONDS_FROM = 1e11
"""A larger number of seconds since 1970 is beyond the year 5000: it is meant in milliseconds."""


class Instants:
    """When each row of a recording happened: by a field of its own, or so many a second."""

    def __init__(self, field: str | None, rate: float | None) -> None:
        if (field is None) == (rate is None):
            raise ValueError("a recording has a field with the time, or a rate")
        self._field = field
        self._rate = rate
        self._decoder = Decoder({field: "timestamp"}) if field else None

    def __call__(self, part: Part) -> Floats:
        """Seconds, NaN for a row without a time that can be read."""
        if self._decoder is None or self._field is None:
            return (np.arange(len(part)) + part.first) / (self._rate or 1.0)
        decode, get = self._decoder, self._decoder.getters[self._field]
        if part.payloads is None:
            rows = [decode.convert(cells) for cells in part.cells]
        else:
            rows = [decode.decode(payload) for payload in part.payloads]
        return np.array([math.nan if type(row) is tuple else instant(get(row)) for row in rows], dtype=np.float64)


def own_times(part: Part) -> Floats:
    """The times that rows of a topic bring themselves."""
    if part.times is None:
        raise ValueError("these rows bring no times of their own")
    return part.times


def instant(value: Any) -> float:
    """Seconds since 1970 of ISO 8601 text, UTC unless it says otherwise, or of a number of seconds or milliseconds.

    >>> instant("1970-01-01T00:01:00Z"), instant(60), instant("1700000000000")
    (60.0, 60.0, 1700000000.0)
    """
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                return math.nan
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return math.nan
    return value / 1000 if abs(value) > MILLISECONDS_FROM else float(value)


class Replay:
    """One run. The output is a function of the recording, the policy and its secret, so it can be made again exactly.

    1. Encode a part; a row without a time is rejected. The clock never runs backwards: a late row happens now.
    2. Up to the next deadline, push what arrives; at the deadline, tick.
    3. At the end, flush.
    """

    def __init__(self, schema: Schema, instants: Callable[[Part], Floats], field: str | None, sheet: Sheet) -> None:
        self.pipeline = Pipeline(schema)
        self._encoder = Encoder(schema)
        self._instants = instants
        self._field = field or ""
        self._sheet = sheet
        self._now = -math.inf

    def run(
        self,
        parts: Iterable[Part],
        reject: Callable[[Sequence[Rejection]], None],
        progress: Callable[[float], None],
    ) -> None:
        """Run to the end. `parts` may come from a file, or from whatever else can number its rows."""
        for part in parts:
            self._feed(part, reject)
            progress(part.reached)
        if math.isfinite(self._now):
            for groups in self.pipeline.finish(self._now):
                self._publish(groups)
        self._sheet.close()

    def _feed(self, part: Part, reject: Callable[[Sequence[Rejection]], None]) -> None:
        when = self._instants(part)
        encoded = part.encode(self._encoder, np.zeros(len(part)))
        timeless = np.isnan(when)
        refused = {r.index for r in encoded.rejections}
        untimed = [Rejection(part.first + int(i), Reject.WRONG_TYPE, self._field) for i in np.flatnonzero(timeless)]
        rejections = sorted([*encoded.rejections, *(r for r in untimed if r.index not in refused)], key=_by_index)
        self.pipeline.tally.read(len(part), rejections)
        if rejections:
            reject(rejections)
        when = np.delete(when, sorted(r - part.first for r in refused))
        rows, when = encoded.batch.take(~np.isnan(when)), when[~np.isnan(when)]
        if not len(rows):
            return
        clock = np.maximum(np.maximum.accumulate(when), self._now)
        rows.arrived[:] = clock
        self._push(rows, clock)

    def _push(self, rows: Batch, clock: Floats) -> None:
        start, bound = 0, self.pipeline.bound
        while start < len(rows):
            wait = self.pipeline.wait(self._now) if math.isfinite(self._now) else None
            due = math.inf if wait is None else self._now + wait
            if due <= clock[start]:
                self._now = max(self._now, due)
                released = self.pipeline.tick(self._now)
                self._publish(released)
                if released or self.pipeline.wait(self._now) != 0.0:
                    continue
            # Rows that arrive before anything can be due, of those waiting or of themselves, arrive together.
            until = min(due, clock[start] + bound / 2) if bound is not None else due
            stop = max(start + 1, int(np.searchsorted(clock, until)))
            self._now = float(clock[stop - 1])
            self._publish(self.pipeline.push(rows.take(slice(start, stop)), self._now))
            start = stop

    def _publish(self, groups: Sequence[Group]) -> None:
        if groups:
            self._sheet.write(groups)
            self.pipeline.published(groups, self._now)


def _by_index(rejection: Rejection) -> int:
    return rejection.index
