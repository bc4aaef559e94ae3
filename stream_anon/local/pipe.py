"""Anonymize lines of JSON or CSV into lines of either. A slow reader downstream slows the input; nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO

from stream_anon.core.decode import Rejection
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.formats.csv_records import CsvLines
from stream_anon.formats.format import RecordWriter
from stream_anon.formats.json_lines import JsonWriter
from stream_anon.formats.text.lines import Lines
from stream_anon.local.pipeline import Pipeline
from stream_anon.observe.limits import NO_LIMITS, Limits

LONGEST_WAIT = 0.2
"""Seconds of waiting for input after which a request to stop is noticed."""


class Pipe:
    """One run from a source of lines to a sink; `writer` writes to the sink, JSON lines if there is none.

    1. Wait for lines, no longer than until the next deadline.
    2. Feed them, publish what came out, group by group, each in one write.
    3. On the end of the input, when `stop` was called, or when too many records are rejected or suppressed, flush and
       return.
    """

    def __init__(
        self,
        schema: Schema,
        source: Lines | CsvLines,
        sink: IO[bytes],
        reject: Callable[[Sequence[Rejection]], None],
        clock: Callable[[], float],
        limits: Limits = NO_LIMITS,
        writer: RecordWriter | None = None,
    ) -> None:
        self.pipeline = Pipeline(schema)
        self._source = source
        self._sink = sink
        self._writer = writer or JsonWriter(sink)
        self._reject = reject
        self._clock = clock
        self._limits = limits
        self.broken: str | None = None  # the limit on rejected or suppressed records that ended the run
        self._stopped = False

    def stop(self) -> None:
        """Stop reading; what is inside is still published."""
        self._stopped = True

    def run(self) -> None:
        """Run to the end. Raises BrokenPipeError if the reader of the sink went away."""
        while not (self._source.ended or self._stopped):
            wait = self.pipeline.wait(self._clock())
            lines = self._source.read(LONGEST_WAIT if wait is None else min(wait, LONGEST_WAIT))
            now = self._clock()
            if lines:
                groups, rejections = self.pipeline.feed(lines, now)
                if rejections:
                    self._reject(rejections)
                self._publish(groups)
            self._publish(self.pipeline.tick(self._clock()))
            self.broken = self._limits.broken(self.pipeline.tally)
            self._stopped |= self.broken is not None
        self.pipeline.tally.lines = self._source.count
        for groups in self.pipeline.finish(self._clock()):
            self._publish(groups)
        self._writer.close()
        self._sink.flush()
        self.broken = self._limits.broken(self.pipeline.tally, ended=True)

    def _publish(self, groups: Sequence[Group]) -> None:
        if groups:
            self._writer.write(groups)
            self._sink.flush()
            self.pipeline.published(groups, self._clock())
