"""Judge groups by counting, compiled: the same verdicts as the privacy models, some hundred times as fast."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.need import CompiledRequirements
from stream_anon.core.kernels import compiled, inner
from stream_anon.core.privacy.base import SLACK
from stream_anon.core.privacy.counting import EQUAL, RECURSIVE, SHARES

Flags = npt.NDArray[np.bool_]
NONE: int = np.int64(0)  # type: ignore[assignment]
"""Zero as a variable has it: for 0 written out, numba compiles what is called once more."""


@inner
def enough(need: CompiledRequirements, rows: Ints, start: int, stop: int) -> bool:
    """Tell whether `rows[start:stop]` are so many, of so many people: all that is asked of blocks while they form."""
    if stop - start < need.rows:
        return False
    if len(need.person) == 0:
        return True
    need.stamp[0] += 1
    people = 0
    for r in range(start, stop):
        who = need.person[rows[r]]
        if need.seen[who] != need.stamp[0]:
            need.seen[who] = need.stamp[0]
            people += 1
    return people >= need.k


@inner
def satisfied(need: CompiledRequirements, rows: Ints, start: int, stop: int) -> bool:
    """Tell whether `rows[start:stop]` together satisfy everything that is counted."""
    if stop - start < need.rows:
        return False
    many = len(need.person) > 0
    if not many and len(need.kind) == 0:
        return True
    need.stamp[0] += 1
    stamp = need.stamp[0]
    people = stop - start
    if many:
        people = 0
        for r in range(start, stop):
            who = need.person[rows[r]]
            if need.seen[who] != stamp:
                need.seen[who] = stamp
                people += 1
        if people < need.k:
            return False
    for m in range(len(need.kind)):
        different, wanted, total = 0, need.least[m], NONE
        for r in range(start, stop):
            if many:
                pair = need.pair[m, rows[r]]
                if need.seen[pair] == stamp:
                    continue
                need.seen[pair] = stamp
            value = need.value[m, rows[r]]
            if need.seen[value] != stamp:
                need.seen[value] = stamp
                need.tally[value] = 0
                different += 1
                wanted = max(wanted, need.demand[value])
            need.tally[value] += 1
            total += 1
        if different < wanted or not _fits(need, m, rows, start, stop, stamp, people, total):
            return False
    return True


@inner
def _fits(
    need: CompiledRequirements, m: int, rows: Ints, start: int, stop: int, stamp: int, people: int, total: int
) -> bool:
    """Tell whether the counts of requirement m are within its bounds. Each value's mark is used up on the way."""
    kind, largest, distance, entropy = need.kind[m], 0, 0.0, 0.0
    for r in range(start, stop):
        value = need.value[m, rows[r]]
        if need.seen[value] != stamp:
            continue
        need.seen[value] = -stamp
        count = need.tally[value]
        if kind == SHARES:
            if count > need.share[value] * people + SLACK * people:
                return False
        elif kind == EQUAL:
            if need.share[value] < 0.0:
                return False
            distance += max(count / total - need.share[value], 0.0)
        elif kind == RECURSIVE:
            largest = max(largest, count)
        else:
            entropy -= count / total * math.log(count / total)
    if kind == SHARES:
        return True
    if kind == EQUAL:
        return bool(distance <= need.limit[m] + SLACK)
    if kind == RECURSIVE:
        return bool(largest - need.limit[m] * _tail(need, m, rows, start, stop, stamp, total) < -SLACK)
    return entropy >= math.log(need.limit[m]) - SLACK


@inner
def _tail(need: CompiledRequirements, m: int, rows: Ints, start: int, stop: int, stamp: int, total: int) -> int:
    """Count the people with the l-th most frequent value or a rarer one."""
    for _ in range(need.least[m] - 1):
        most = -1
        for r in range(start, stop):
            value = need.value[m, rows[r]]
            if need.seen[value] == -stamp and (most < 0 or need.tally[value] > need.tally[most]):
                most = value
        if most >= 0:
            need.seen[most] = 0
            total -= need.tally[most]
    return total


@compiled
def satisfied_by(need: CompiledRequirements, index: Ints) -> bool:
    """Tell whether these rows satisfy everything that is counted."""
    return satisfied(need, index, NONE, len(index))


@compiled
def all_satisfied(need: CompiledRequirements, order: Ints, starts: Ints) -> bool:
    """Tell whether each of the consecutive ranges of `order` satisfies everything that is counted."""
    for c in range(len(starts) - 1):  # noqa: SIM110 - compiled, a loop is faster than a generator
        if not satisfied(need, order, starts[c], starts[c + 1]):
            return False
    return True


@compiled
def satisfied_each(need: CompiledRequirements, starts: Ints) -> Flags:
    """Tell of each of the consecutive ranges of rows whether it satisfies everything that is counted."""
    rows = np.arange(starts[-1])
    result = np.empty(len(starts) - 1, dtype=np.bool_)
    for c in range(len(result)):
        result[c] = satisfied(need, rows, starts[c], starts[c + 1])
    return result
