"""Whole rounds in one kernel: the same groups as row by row, in time, where the bound is wide enough for it."""

from __future__ import annotations

import pytest
from cases import GROWING, row_of
from contract import Run, deliver

from stream_anon.core.kernels import COMPILED
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.stream.cail import LARGE

BOUND = 3 * LARGE + 4
"""Arrivals; just wide enough for k = 3, and narrow enough that many rows come to their deadline."""


def _told(
    policy: str,
    sizes: int,
    compiled: bool,
    settings: dict[str, float],
    seed: int = 7,
    delay: MaxDelay = MaxDelay(records=BOUND),  # noqa: B008 - frozen
) -> list[object]:
    """What a run publishes: groups until the end, groups in all, suppressed rows. A second passes after each batch."""
    run = Run.of(policy, "cail", StreamSettings(max_delay=delay), settings, compiled)
    rows = [row_of(number * 2654435761 + seed) for number in range(4 * BOUND)]
    deliver(run, rows, lambda: sizes, lambda: 1)
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
    one_by_one = _told(policy, 1, compiled=False, settings=settings)
    assert one_by_one[0]
    for sizes in (1, 13, 4 * BOUND):
        assert _told(policy, sizes, compiled=True, settings=settings) == one_by_one


@pytest.mark.skipif(not COMPILED, reason="without numba there is only one way")
@pytest.mark.parametrize("policy", GROWING)
@pytest.mark.parametrize(
    ("remark", "delay"),
    [
        ("many arrivals within the bound", MaxDelay(time=9.0)),
        ("too few of them", MaxDelay(time=5.0)),
        ("both bounds, the clock strikes first", MaxDelay(time=8.0, records=BOUND + 20)),
        ("both bounds, the count is reached first", MaxDelay(time=20.0, records=BOUND)),
    ],
)
def test_deadlines_by_the_clock_in_one_kernel(policy: str, remark: str, delay: MaxDelay) -> None:
    one_by_one = _told(policy, 13, compiled=False, settings={}, delay=delay)
    assert one_by_one[0]
    assert _told(policy, 13, compiled=True, settings={}, delay=delay) == one_by_one
