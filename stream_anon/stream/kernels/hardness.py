"""Compiled measure of how hard a row is to place, against the last arrivals."""

from __future__ import annotations

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import inner
from stream_anon.stream.kernels.boxes import add, widen_column

STEPS = 256
"""Steps in which hardness is counted: finer than it is exact, and whole numbers sum the same in any order."""


@inner
def hardness_of(
    facts: Ints,
    values: Floats,
    weight: Floats,
    order: Ints,
    qi: Ints,
    slot: int,
    sample: Ints,
    known: int,
    costs: Floats,
    total: Floats,
    steps: Ints,
) -> float:
    """Compute the hardness for `Kernels.arrive`, in whole steps, so that the nearest are found without sorting."""
    for i in range(known):
        total[i] = 0.0
    for q in order:
        widen_column(facts, values, weight, q, qi[slot, q], qi[slot, q], sample[q], known, costs)
        add(costs, known, total)
    for step in range(STEPS + 1):
        steps[step] = 0
    for i in range(known):
        steps[int(max(min(total[i], 1.0), 0.0) * STEPS)] += 1
    wanted = (known + 3) // 4
    left, sum_ = wanted, 0
    for step in range(STEPS + 1):
        count = min(left, steps[step])
        sum_ += step * count
        left -= count
        if left == 0:
            break
    return sum_ / (wanted * STEPS) if wanted else 0.0
