"""A long run at level memory: what has left leaves nothing behind."""

from __future__ import annotations

import gc
import resource
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import ALGORITHMS, schema_of

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.stream import Engine, build

ROWS = 120_000
DELAY = 300
SIZE = 1000
STATUS = Path("/proc/self/statm")
needs_status = pytest.mark.skipif(not STATUS.exists(), reason="the system does not tell how much memory is in use")
TOLERANCE = 6 * 2**20
"""Rows kept by mistake would take five times as much: a payload alone is some 300 bytes."""


class Payload:
    """A value of a row, as large as one may be, whose end can be watched."""

    def __init__(self) -> None:
        self.text = "x" * 100


def batch_of(schema: Schema, start: int, count: int, random: np.random.Generator) -> Batch:
    """Rows of ever new people, with a payload each."""
    lowest = [getattr(column.hierarchy, "lowest", 0) for column in schema.quasi]
    qi = np.stack([low + random.integers(0, 4, size=count) for low in lowest], axis=1)
    codes = random.integers(0, 8, size=(count, len(schema.sensitive)))
    values = np.empty((count, len(schema.published)), dtype=object)
    values[:, -1] = [Payload() for _ in range(count)]
    offsets = np.arange(start, start + count, dtype=np.int64)
    return Batch(
        qi=qi.astype(np.int64),
        sensitive=codes.astype(np.int64),
        guard=np.full(codes.shape, NO_GUARD, dtype=np.int64),
        psf=np.zeros(codes.shape, dtype=np.int64),
        subject=offsets,
        arrived=np.full(count, float(start)),
        ref=np.stack([offsets % 4, offsets], axis=1),
        serial=np.full(count, UNNUMBERED, dtype=np.int64),
        values=values,
    )


def resident() -> int:
    """Bytes of memory in use by this process."""
    gc.collect()
    return int(STATUS.read_text().split()[1]) * resource.getpagesize()


def long_run(rows: int, algorithm: str = "cail", **changed: Any) -> tuple[Engine, list[int]]:
    """Push so many rows and measure the memory in use at ten points; the engine, and the bytes at each point."""
    schema = schema_of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=DELAY)), changed)
    engine, random, used = build(schema), np.random.default_rng(5), []
    published = 0
    for start in range(0, rows, SIZE):
        outcome = engine.push(batch_of(schema, start, SIZE, random), float(start))
        published += sum(len(group.rows) for group in outcome.groups)
        del outcome
        if (start // SIZE + 1) * 10 // (rows // SIZE) > len(used):
            used.append(resident())
    if published + len(engine) != rows:
        raise AssertionError(f"{rows - published - len(engine)} rows are neither published nor inside")
    return engine, used


@needs_status
def test_a_long_run_stays_level() -> None:
    """The engine's own bookkeeping is full before the first half is over; after that nothing grows."""
    engine, used = long_run(ROWS)
    first, second = used[4], max(used[5:])
    assert second <= first + TOLERANCE, used
    assert engine._buffer.capacity <= 2048  # bound and batch; the stream is many times longer
    assert len(engine) <= DELAY


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_of_a_row_that_left_stays_alive(algorithm: str) -> None:
    """Neither by being published, nor by being suppressed, nor by being taken away."""
    schema = schema_of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=50)))
    engine, random = build(schema), np.random.default_rng(9)
    planted: list[weakref.ref[Payload]] = []
    for start in range(0, 3000, 100):
        batch = batch_of(schema, start, 100, random)
        planted += [weakref.ref(value) for value in batch.values[:, -1]]
        engine.push(batch, float(start))
        del batch
    assert len(planted) == 3000
    gc.collect()
    assert sum(ref() is not None for ref in planted) == len(engine)
    engine.remove(np.array([[offset % 4, offset] for offset in range(2990, 3000)], dtype=np.int64))
    gc.collect()
    assert sum(ref() is not None for ref in planted) == len(engine)
    engine.flush()
    gc.collect()
    assert [ref for ref in planted if ref() is not None] == []


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_of_a_suppressed_row_stays_alive(algorithm: str) -> None:
    schema = schema_of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=5)))
    engine, random = build(schema), np.random.default_rng(9)
    batch = batch_of(schema, 0, 40, random)
    batch.subject[:] = 7
    planted = [weakref.ref(value) for value in batch.values[:, -1]]
    outcome = engine.push(batch, 0.0)
    assert outcome.suppressed is not None
    assert len(outcome.suppressed) == 35
    del outcome, batch
    gc.collect()
    assert sum(ref() is not None for ref in planted) == len(engine) == 5


def test_many_rows_of_one_person_cost_no_more_than_others() -> None:
    """Whoever sends a thousand rows in a row fills the buffer, but each of them is given up in one look."""
    schema = schema_of("distinct l above k", "fads", StreamSettings(max_delay=MaxDelay(records=400)))
    engine, random = build(schema), np.random.default_rng(3)
    batch = batch_of(schema, 0, 1000, random)
    batch.subject[:] = 7
    calls = 0
    judge = schema.requirements.failing

    def counted(rows: Batch) -> Any:
        nonlocal calls
        calls += 1
        return judge(rows)

    schema.requirements.failing = counted  # type: ignore[method-assign]
    outcome = engine.push(batch, 0.0)
    assert outcome.suppressed is not None
    assert len(outcome.suppressed) == 600
    assert calls <= 2 * 600
