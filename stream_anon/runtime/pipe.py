"""JSON lines in, anonymized JSON lines out. What a full pipe downstream holds up is held up here: nothing is dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import IO

from stream_anon.core.decode import Rejection
from stream_anon.core.group import Group
from stream_anon.core.schema import Schema
from stream_anon.io.lines import Lines
from stream_anon.observe.tally import Tally
from stream_anon.runtime.pipeline import Pipeline


class Pipe:
    """One run from a source of lines to a sink.

    1. Wait for lines, no longer than until the next deadline.
    2. Feed them, publish what came out, group by group, each in one write.
    3. On the end of the input, or when `stop` was called, flush and return.
    """

    def __init__(
        self,
        schema: Schema,
        source: Lines,
        sink: IO[bytes],
        dead_letters: IO[bytes],
        clock: Callable[[], float],
    ) -> None:
        self._pipeline = Pipeline(schema)
        self._source = source
        self._sink = sink
        self._dead_letters = dead_letters
        self._clock = clock
        self._stopped = False

    @property
    def tally(self) -> Tally:
        """What has happened so far."""
        return self._pipeline.tally

    def stop(self) -> None:
        """Read no more; what is inside is still published."""
        self._stopped = True

    def run(self) -> None:
        """Run to the end. Raises BrokenPipeError if the reader of the sink went away."""
        while not (self._source.ended or self._stopped):
            timeout = self._pipeline.wait(self._clock())
            lines = self._source.read(0.2 if timeout is None else min(timeout, 0.2))
            now = self._clock()
            if lines:
                groups, rejections = self._pipeline.feed(lines, now)
                self._reject(rejections)
                self._publish(groups)
            self._publish(self._pipeline.tick(now))
        self._publish(self._pipeline.finish(self._clock()))

    def _publish(self, groups: Iterable[Group]) -> None:
        written = False
        for group in groups:
            self._sink.write(b"".join([record + b"\n" for record in group.encoded()]))
            written = True
        if written:
            self._sink.flush()

    def _reject(self, rejections: Iterable[Rejection]) -> None:
        for rejection in rejections:
            letter = {"code": str(rejection.code), "column": rejection.column, "line": rejection.index}
            self._dead_letters.write(json.dumps(letter).encode() + b"\n")
        self._dead_letters.flush()
