"""Whole rounds in one kernel: the same groups as row by row, in time, where the bound is wide enough for it."""

from __future__ import annotations

import pytest
from contract import GROWING, Run, deliver, row_of

from stream_anon.core.kernels import COMPILED
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.stream.transient import LARGE

BOUND = 3 * LARGE + 4
"""Arrivals; just wide enough for k = 3, and narrow enough that many rows come to their deadline."""


def _told(policy: str, sizes: int, compiled: bool, settings: dict[str, float], seed: int) -> list[object]:
    stream = StreamSettings(max_delay=MaxDelay(records=BOUND))
    run = Run.of(policy, "cail", stream, settings, compiled)
    rows = [row_of(number * 2654435761 + seed) for number in range(4 * BOUND)]
    deliver(run, rows, lambda: sizes, lambda: 0)
    before_the_end = run.told()
    run.flush()
    return [before_the_end, run.told(), sorted(run.suppressed)]


@pytest.mark.skipif(not COMPILED, reason="without numba there is only one way")
@pytest.mark.parametrize("policy", GROWING)
@pytest.mark.parametrize(
    ("remark", "settings"),
    [
        ("defaults", {}),
        ("many clusters leave early", {"patience": 0.9}),
        ("a fixed threshold", {"threshold": 0.2}),
        ("no cluster leaves early", {"threshold": 0.0}),
        ("hardness matters most", {"opportunity": 5.0, "memory": 3}),
    ],
)
def test_rounds_in_one_kernel_are_rounds_row_by_row(policy: str, remark: str, settings: dict[str, float]) -> None:
    """The run behind it checks after every call that nothing is late and every group satisfies the policy."""
    one_by_one = _told(policy, 1, compiled=False, settings=settings, seed=7)
    assert one_by_one[0]
    for sizes in (1, 13, 4 * BOUND):
        assert _told(policy, sizes, compiled=True, settings=settings, seed=7) == one_by_one
