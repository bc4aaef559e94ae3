"""Replay a recording through a stream algorithm on its own clock; rows without a time are rejected."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from stream_anon.core.decode import Decoder, Reader, Reject, Rejection
from stream_anon.core.encode import Encoder
from stream_anon.core.hierarchy import Floats
from stream_anon.core.schema import Schema
from stream_anon.formats.tables import Part
from stream_anon.formats.writers import RecordWriter
from stream_anon.local.simulation import Simulation
from stream_anon.observe.limits import NO_LIMITS, Limits

MILLISECONDS_FROM = 1e11
"""A larger number of seconds since 1970 is beyond the year 5000: it is meant in milliseconds."""


class Instants:
    """The times of the rows of a recording: from one of their fields, or at a fixed rate."""

    def __init__(self, field: str | None, rate: float | None) -> None:
        if (field is None) == (rate is None):
            raise ValueError("a recording has a field with the time, or a rate")
        self._field = field
        self._rate = rate
        self._decoder = Decoder({field: "timestamp"}) if field else None

    def __call__(self, part: Part) -> Floats:
        """Return the times in seconds, NaN for a row without a readable time."""
        if self._decoder is None or self._field is None:
            return (np.arange(len(part)) + part.first) / (self._rate or 1.0)
        decode, get = self._decoder, self._decoder.getters[self._field]
        rows = [decode.decode(payload) for payload in part.payloads]
        return np.array([math.nan if type(row) is tuple else instant(get(row)) for row in rows], dtype=np.float64)


def own_times(part: Part) -> Floats:
    """Return the times that rows of a topic carry themselves."""
    if part.times is None:
        raise ValueError("these rows bring no times of their own")
    return part.times


def instant(value: Any) -> float:
    """Parse ISO 8601 text (UTC by default), or a number of seconds or milliseconds, into seconds since 1970.

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
    """One replay. Its output depends only on the recording, the policy and the secret, so it is reproducible.

    A row without a time is rejected.
    """

    def __init__(
        self,
        schema: Schema,
        instants: Callable[[Part], Floats],
        field: str | None,
        writer: RecordWriter,
        limits: Limits = NO_LIMITS,
        reader: Callable[[Mapping[str, str]], Reader] = Decoder,
    ) -> None:
        self._simulation = Simulation(schema, writer.write)
        self.pipeline = self._simulation.pipeline
        self._encoder = Encoder(schema, reader=reader)
        self._instants = instants
        self._field = field or ""
        self._writer = writer
        self._limits = limits

    def run(
        self,
        parts: Iterable[Part],
        reject: Callable[[Sequence[Rejection]], None],
        progress: Callable[[float], None],
    ) -> None:
        """Run to the end. `parts` may come from a file, or from any source that numbers its rows."""
        for part in parts:
            self._feed(part, reject)
            self.pipeline.tally.lines = part.lines
            progress(part.reached)
            self._limits.check(self.pipeline.tally, ended=False)
        self._simulation.finish()
        self._limits.check(self.pipeline.tally)
        self._writer.close()

    def _feed(self, part: Part, reject: Callable[[Sequence[Rejection]], None]) -> None:
        when = self._instants(part)
        encoded = part.encode(self._encoder, np.zeros(len(part)))
        timeless = np.isnan(when)
        refused = {r.index for r in encoded.rejections}
        untimed = [Rejection(int(n), Reject.WRONG_TYPE, self._field) for n in part.numbers[timeless]]
        rejections = sorted([*encoded.rejections, *(r for r in untimed if r.index not in refused)], key=_by_index)
        self.pipeline.tally.read(len(part), rejections)
        if rejections:
            reject(rejections)
        when = when[~np.isin(part.numbers, list(refused))]
        timed = ~np.isnan(when)
        self._simulation.push(encoded.batch.take(timed), when[timed])


def _by_index(rejection: Rejection) -> int:
    return rejection.index
