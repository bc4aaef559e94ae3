"""Newcomers find the same company, however the rows that cannot be near are passed over."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_anon.core.hierarchy import Calendar, Hierarchy, Interval, Leaves, Prefix, Tree, branch
from stream_anon.core.kernels import COMPILED, SHORT, pack
from stream_anon.stream.kernels import Columns, Counted, Kernels, Memory

pytestmark = pytest.mark.skipif(not COMPILED, reason="numba is not installed: there is only one path")

BOTH = Leaves(missing=True, unknown=True)
HIERARCHIES: list[Hierarchy] = [
    Prefix(2, leaves=BOTH),
    Calendar(["day", "month", "year"], leaves=BOTH),
    Tree(branch("*", {"a": ["a1", "a2"], "b": ["b1", "b2"]}), BOTH),
    Interval(0, 40, snap=[5, 20]),
]
VALUES = [
    [None, "x", "10", "11", "12", "20", "21", "90"],
    [None, "soon", "2026-03-01", "2026-03-02", "2026-07-01", "2025-03-01"],
    [None, "c", "a1", "a2", "b1"],
    [0, 3, 4, 6, 19, 21, 40],
]
ROWS = 48


@given(data=st.data(), k=st.integers(2, 4), short=st.sampled_from([0, SHORT]))
@settings(max_examples=150, deadline=None)
def test_arriving(data: st.DataObject, k: int, short: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shares = np.array(data.draw(st.tuples(*[st.sampled_from([0.0, 0.1, 1.0, 3.0])] * 4)))
    limit = data.draw(st.floats(0.0, 0.5) | st.sampled_from([0.05, 0.1, 0.125, 0.25]))
    with mock.patch("stream_anon.core.kernels.SHORT", short):
        prices = pack(HIERARCHIES, (shares / max(shares.sum(), 1.0)).tolist())
    codes = [
        h.encode([v[i] for i in rng.integers(0, len(v), ROWS)])[0] for h, v in zip(HIERARCHIES, VALUES, strict=True)
    ]
    qi, alone = np.stack(codes, axis=1), np.arange(ROWS)
    columns = Columns(qi, alone, np.zeros((ROWS, 0), dtype=np.int64), alone, np.zeros(ROWS))
    need = Counted(k, np.zeros(0, dtype=np.int64))
    told = []
    for compiled in (True, False):
        kernels = Kernels(prices, HIERARCHIES, compiled)
        sample, hardness = np.zeros((len(HIERARCHIES), 16), dtype=np.int64), np.zeros(ROWS)
        waiting, found = alone[:0], []
        for slot in range(ROWS):
            queue, memory = np.append(waiting, slot), Memory(sample, slot, np.zeros(1), 0)
            _, members = kernels.arrive(columns, queue, len(waiting), memory, hardness, need, limit)
            waiting = queue[~np.isin(queue, members)]
            found.append(members.tolist())
        told.append((found, hardness.tolist()))
    assert told[0] == told[1]
