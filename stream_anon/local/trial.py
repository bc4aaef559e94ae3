"""Try a policy on the rows of a table in memory: one run of an algorithm over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stream_anon.batch import partition
from stream_anon.core.batch import Batch
from stream_anon.core.decode import Decoder, Reader, Rejection
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.formats.tables import Part
from stream_anon.local.simulation import Simulation
from stream_anon.observe.tally import Tally

AT_ONCE = 2_000
"""Rows simulated between two reports of progress."""

Progress = Callable[[float], None]
"""A progress callback: called with the share that is done, 0 to 1."""


def encode_all(
    parts: Iterable[Part],
    schema: Schema,
    tally: Tally,
    reject: Callable[[Sequence[Rejection]], None],
    progress: Progress,
    reader: Callable[[Mapping[str, str]], Reader] = Decoder,
) -> Batch | None:
    """Encode all rows of a table and report those that cannot be encoded. None if the table has no part."""
    encoder, batches = Encoder(schema, reader=reader), []
    for part in parts:
        encoded = part.encode(encoder, np.zeros(len(part)))
        tally.read(len(part), encoded.rejections)
        if encoded.rejections:
            reject(encoded.rejections)
        tally.lines = part.lines
        batches.append(encoded.batch)
        progress(part.reached)
    return Batch.concat(batches) if batches else None


@dataclass(slots=True)
class Trial:
    """The groups and the tally of one run. `bound` is the delay bound in seconds, None for a batch algorithm."""

    schema: Schema
    tally: Tally
    bound: float | None = None
    groups: list[Group] = field(default_factory=list)


def try_stream(schema: Schema, rows: Batch | None, rate: float, progress: Progress) -> Trial:
    """Run the policy's stream algorithm with `rate` rows a second on a simulated clock."""
    simulation = Simulation(schema, lambda groups: trial.groups.extend(groups))
    trial = Trial(schema, simulation.pipeline.tally, bound_of(schema, rate))
    total = 0 if rows is None else len(rows)
    for start in range(0, total, AT_ONCE):
        assert rows is not None  # noqa: S101 - for the type checker
        part = rows.take(np.arange(start, min(start + AT_ONCE, total)))  # a copy: each run has arrival times of its own
        simulation.push(part, np.arange(start, start + len(part)) / rate)
        progress(min(1.0, (start + AT_ONCE) / total))
    simulation.finish()
    return trial


def try_batch(
    schema: Schema, rows: Batch | None, algorithm: str, progress: Progress, options: Mapping[str, Any] | None = None
) -> Trial:
    """Run a batch algorithm over all rows at once."""
    trial = Trial(schema, Tally([column.name for column in schema.quasi], schema.requirements.k, schema.counts))
    if rows is None or not len(rows):
        return trial
    found = partition(algorithm, rows, schema, options, watch=lambda settled: progress(settled / len(rows)))
    trial.groups = found.groups
    trial.tally.suppress(found.suppressed)
    trial.tally.publish(found.groups, 0.0)
    return trial


def bound_of(schema: Schema, rate: float) -> float:
    """Return the delay bound in seconds; a bound by records counts at this rate."""
    delay = schema.policy.stream.max_delay
    return min(delay.time or np.inf, (delay.records or np.inf) / rate)
