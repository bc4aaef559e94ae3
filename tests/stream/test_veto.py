"""The laws of the veto: whatever blocks it is given, every row is in one group that may leave, or in what is left."""

from __future__ import annotations

import json

import numpy as np
from cases import every_policy, few, row_of, schema_of
from hypothesis import given
from hypothesis import strategies as st

from stream_anon.core.encode import Encoder
from stream_anon.core.judging.veto import Veto
from stream_anon.policy.settings import MaxDelay, StreamSettings

numbers = st.lists(st.integers(0, 2**48 - 1), min_size=1, max_size=30)


@every_policy
@few(25)
@given(numbers=numbers, cuts=st.lists(st.integers(1, 29), max_size=6), share=st.floats(0, 1), often=st.booleans())
def test_what_is_left_could_not_have_left(
    policy: str, numbers: list[int], cuts: list[int], share: float, often: bool
) -> None:
    schema = schema_of(policy, "cail", StreamSettings(max_delay=MaxDelay(records=100)))
    payloads = [json.dumps(row_of(number)).encode() for number in numbers]
    ref = np.stack([np.zeros(len(numbers), dtype=np.int64), np.arange(len(numbers))], axis=1)
    rows = Encoder(schema).encode(payloads, ref, np.zeros(len(numbers))).batch
    schema.requirements.observe(rows)
    blocks = np.split(np.arange(len(rows)), sorted({cut for cut in cuts if cut < len(rows)}))
    veto = Veto(schema)
    if often:
        veto.passes(rows, blocks)
    groups, rest = veto.settle(rows, blocks, int(share * len(blocks)))
    left = [] if rest is None else rest.tolist()
    assert sorted([slot for group in groups for slot in group.tolist()] + left) == list(range(len(rows)))
    assert all(schema.requirements.holds(rows.take(group)) for group in groups)
    assert rest is None or not schema.requirements.holds(rows.take(rest))
