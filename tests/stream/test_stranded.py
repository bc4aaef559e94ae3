"""The end of the input: nobody is suppressed who could have joined a group that leaves with, or just before, them."""

from __future__ import annotations

import numpy as np
import pytest
from cases import GROWING, bounds, deadlines, every_algorithm, few, gaps, rows_of_length, schema_of
from hypothesis import given
from hypothesis import strategies as st

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.local.pipeline import Pipeline
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.stream import build
from stream_anon.testing.contract.definitions import Row

FAR = MaxDelay(time=1e6)


def encoded(schema: Schema, rows: list[Row], first: int = 0) -> Batch:
    ref = np.stack([np.zeros(len(rows), np.int64), np.arange(first, first + len(rows))], axis=1)
    return Encoder(schema).encode(rows, ref, np.zeros(len(rows))).batch


@every_algorithm
@pytest.mark.parametrize("policy", GROWING)
@few(40)
@given(rows=rows_of_length(1, 60))
def test_a_flush_strands_nobody_if_all_together_could_leave(algorithm: str, policy: str, rows: list[Row]) -> None:
    schema = schema_of(policy, algorithm, StreamSettings(max_delay=FAR))
    engine, batch = build(schema), encoded(schema, rows)
    early = engine.push(batch, 0.0).groups
    gone = {ref for group in early for ref in group.rows.ref[:, 1].tolist()}
    rest = batch.take(np.array([ref not in gone for ref in batch.ref[:, 1].tolist()]))
    last = engine.flush()
    assert len(engine) == 0
    if len(rest) and schema.requirements.holds(rest):
        assert last.suppressed is None
        assert sum(len(group) for group in last.groups) == len(rest)
    assert all(schema.requirements.holds(group.rows) for group in last.groups)


@every_algorithm
@few(40)
@given(
    rows=rows_of_length(1, 60),
    bound=bounds,
    at_deadline=deadlines,
    gaps=gaps,
    policy=st.sampled_from(GROWING),
    pace=st.integers(0, 3),
)
def test_the_end_of_a_run_strands_nobody(
    algorithm: str, policy: str, rows: list[Row], bound: MaxDelay, at_deadline: str, gaps: list[int], pace: int
) -> None:
    """Also where the last groups leave a part at a time, to be out in time."""
    schema = schema_of(policy, algorithm, StreamSettings(max_delay=bound, on_deadline=at_deadline))
    pipeline, now, out = Pipeline(schema), 0.0, list[Group]()
    for number, row in enumerate(rows):
        now += gaps[number % len(gaps)] * pace / 4
        batch = encoded(schema, [row], number)
        batch.arrived[:] = now
        out += pipeline.push(batch, now)
    before, waiting = pipeline.tally.suppressed, len(pipeline.engine)
    inside = [row for row, left in zip(rows, _left(out, len(rows)), strict=True) if not left]
    last = [group for groups in pipeline.finish(now) for group in groups]
    assert sum(map(len, out + last)) + pipeline.tally.suppressed == len(rows)
    if before == 0 and inside and schema.requirements.holds(encoded(schema, inside)):
        assert pipeline.tally.suppressed == 0
        assert sum(map(len, last)) == waiting == len(inside)


def _left(groups: list[Group], count: int) -> list[bool]:
    gone = {ref for group in groups for ref in group.rows.ref[:, 1].tolist()}
    return [number in gone for number in range(count)]
