"""Anonymize a whole table with a batch algorithm: read, divide, write. Reports progress and never reads a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from stream_anon.batch import build, partition
from stream_anon.batch.support import check
from stream_anon.core.batch import Batch
from stream_anon.core.decode import Decoder, Reader, Rejection
from stream_anon.core.gate import Group
from stream_anon.core.loss.classes import Classes, ClassMeasures, ClassSums
from stream_anon.core.loss.columns import bins_of
from stream_anon.core.schema import Schema
from stream_anon.formats.tables import Part
from stream_anon.formats.writers import RecordWriter
from stream_anon.local.summary import summary_of
from stream_anon.local.trial import Progress, encode_all
from stream_anon.observe.limits import NO_LIMITS, Limits
from stream_anon.observe.tally import Tally

AT_ONCE = 500
"""Groups written between two reports of progress."""

_FEW = 200


class Anonymization:
    """One table and one algorithm, in three steps that the caller takes in order: `read`, `divide`, `write`.

    The first two raise TooMuchLost, before anything is written, where more is lost than `limits` allow. Before
    `divide`, `warm_up` takes the time of compiling out of it.
    """

    def __init__(
        self,
        schema: Schema,
        algorithm: str,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
        limits: Limits = NO_LIMITS,
        reader: Callable[[Mapping[str, str]], Reader] = Decoder,
    ) -> None:
        self._per_pair = build(algorithm, options, seed).nanoseconds
        check(algorithm, schema)
        self.schema = schema
        self.algorithm = algorithm
        self.tally = Tally([column.name for column in schema.quasi], schema.requirements.k, schema.counts)
        self.rows: Batch | None = None
        self.groups: list[Group] = []
        self._limits, self._reader = limits, reader
        self._options = options
        self._seed = seed

    def read(self, parts: Iterable[Part], reject: Callable[[Sequence[Rejection]], None], progress: Progress) -> None:
        """Encode all rows and report those that cannot be encoded."""
        self.rows = encode_all(parts, self.schema, self.tally, reject, progress, self._reader)
        self._limits.check(self.tally)

    @property
    def seconds(self) -> float:
        """The estimated time of dividing, if the work grows with the square of the rows; else 0."""
        return self._per_pair * 1e-9 * float(len(self.rows or ())) ** 2

    def warm_up(self) -> None:
        """Divide a few of the rows and discard the result: this compiles what the algorithm needs."""
        if self.rows is not None and len(self.rows):
            run_in_background = replace(self.schema, requirements=deepcopy(self.schema.requirements))
            partition(self.algorithm, self.rows.take(slice(0, _FEW)), run_in_background, self._options, self._seed)

    def divide(self, progress: Progress) -> None:
        """Make groups, ordered by their ids, which reveal nothing."""
        if self.rows is None:
            return
        n = max(len(self.rows), 1)
        found = partition(
            self.algorithm, self.rows, self.schema, self._options, self._seed, lambda settled: progress(settled / n)
        )
        self.tally.suppress(found.suppressed)
        self._limits.check(self.tally)
        self.groups = sorted(found.groups, key=lambda group: group.id)

    def write(self, writer: RecordWriter, progress: Progress) -> None:
        """Write all groups to the output."""
        for start in range(0, len(self.groups), AT_ONCE):
            groups = self.groups[start : start + AT_ONCE]
            writer.write(groups)
            self.tally.publish(groups, 0.0)
            progress(min(1.0, (start + AT_ONCE) / len(self.groups)))
        writer.close()

    def summary(self) -> dict[str, Any]:
        """Return the results as plain data."""
        return summary_of(self.algorithm, self.tally, self.measures())

    def measures(self) -> ClassMeasures:
        """Return what the papers measure of the classes; sensitive values count as they came."""
        qi = np.empty((0, len(self.schema.quasi)), dtype=np.int64) if self.rows is None else self.rows.qi
        sums = sums_of(self.schema, bins_of(qi))
        for group in self.groups[:1]:
            found = group.released
            sums.add(Classes(found.rows.qi, found.rows.sensitive, found.starts, found.low, found.high, found.losses))
        sums.suppress(self.tally.suppressed)
        return sums.measures(self.schema.requirements.k)


def sums_of(schema: Schema, bins: list[list[int]]) -> ClassSums:
    """Return sums over classes to which nothing was added yet."""
    columns = [(column.name, column.hierarchy) for column in schema.quasi]
    return ClassSums(columns, [column.name for column in schema.sensitive], bins)
