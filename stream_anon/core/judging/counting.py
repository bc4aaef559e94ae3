"""Judge groups by counting, compiled: the same verdicts as the privacy models, some hundred times as fast."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.need import CompiledRequirements
from stream_anon.core.kernels import inner, kernel
from stream_anon.core.privacy.base import SLACK
from stream_anon.core.privacy.counting import EQUAL, RECURSIVE, SHARES

Flags = npt.NDArray[np.bool_]
NONE: int = np.int64(0)  # type: ignore[assignment]
"""Zero as a variable has it: for 0 written out, numba compiles what is called once more."""


@inner
def _people(need: CompiledRequirements, rows: Ints, start: int, stop: int) -> int:
    """Return how many people `rows[start:stop]` are of."""
    code, seen, people = need.code, need.seen, stop - start
    count = len(need.rule)
    if len(code) > count:  # some people have several rows
        seen[0] += 1
        stamp = seen[0]
        for r in range(start, stop):
            who = code[2 * count, rows[r]]
            people -= seen[who] == stamp
            seen[who] = stamp
    return people


@inner
def enough(need: CompiledRequirements, rows: Ints, start: int, stop: int) -> bool:
    """Tell whether `rows[start:stop]` are so many, of so many people: all that is asked of blocks while they form."""
    return stop - start >= need.rows and _people(need, rows, start, stop) >= need.k


@inner
def satisfied(need: CompiledRequirements, rows: Ints, start: int, stop: int) -> bool:
    """Tell whether `rows[start:stop]` together satisfy everything that is counted."""
    if stop - start < need.rows:
        return False
    code, rule, seen, tally, demand = need.code, need.rule, need.seen, need.tally, need.demand
    count, many = len(rule), len(code) > len(rule)
    people = _people(need, rows, start, stop)
    if people < need.k:
        return False
    seen[0] += 1
    stamp = seen[0]
    for m in range(count):
        different, wanted, total = 0, rule[m, 1], stop - start
        for r in range(start, stop):
            if many:
                pair = code[count + m, rows[r]]
                if seen[pair] == stamp:
                    total -= 1
                    continue
                seen[pair] = stamp
            value = code[m, rows[r]]
            if seen[value] != stamp:
                seen[value] = stamp
                tally[value] = 0
                different += 1
                wanted = max(wanted, demand[value])
            tally[value] += 1
        if different < wanted or not _fits(need, m, rows, start, stop, stamp, people, total):
            return False
    return True


@inner
def _fits(
    need: CompiledRequirements, m: int, rows: Ints, start: int, stop: int, stamp: int, people: int, total: int
) -> bool:
    """Tell whether the counts of requirement m are within its bounds. Each value's mark is used up on the way."""
    code, seen, tally, share = need.code, need.seen, need.tally, need.share
    kind, limit, largest, distance, entropy = need.rule[m, 0], need.limit[m], 0, 0.0, 0.0
    for r in range(start, stop):
        value = code[m, rows[r]]
        if seen[value] != stamp:
            continue
        seen[value] = -stamp
        count = tally[value]
        if kind == SHARES:
            if count > share[value] * people + SLACK * people:
                return False
        elif kind == EQUAL:
            if share[value] < 0.0:
                return False
            distance += max(count / total - share[value], 0.0)
        elif kind == RECURSIVE:
            largest = max(largest, count)
        else:
            entropy -= count / total * math.log(count / total)
    if kind == SHARES:
        return True
    if kind == EQUAL:
        return bool(distance <= limit + SLACK)
    if kind == RECURSIVE:
        return bool(largest - limit * _tail(need, m, rows, start, stop, stamp, total) < -SLACK)
    return entropy >= math.log(limit) - SLACK


@inner
def _tail(need: CompiledRequirements, m: int, rows: Ints, start: int, stop: int, stamp: int, total: int) -> int:
    """Count the people with the l-th most frequent value or a rarer one."""
    code, seen, tally = need.code, need.seen, need.tally
    for _ in range(need.rule[m, 1] - 1):
        most = -1
        for r in range(start, stop):
            value = code[m, rows[r]]
            if seen[value] == -stamp and (most < 0 or tally[value] > tally[most]):
                most = value
        if most >= 0:
            seen[most] = 0
            total -= tally[most]
    return total


@kernel
def _judge_each(need: CompiledRequirements, order: Ints, starts: Ints, good: Flags, each: bool) -> None:
    """Note for consecutive ranges of `order` whether they satisfy everything; unless `each`, up to one that fails."""
    for c in range(len(good)):
        good[c] = satisfied(need, order, starts[c], starts[c + 1])
        if not (each or good[c]):
            return


def satisfied_by(need: CompiledRequirements, index: Ints) -> bool:
    """Tell whether these rows satisfy everything that is counted."""
    return all_satisfied(need, index, np.array([0, len(index)], dtype=np.int64))


def all_satisfied(need: CompiledRequirements, order: Ints, starts: Ints) -> bool:
    """Tell whether each of the consecutive ranges of `order` satisfies everything that is counted."""
    good = np.zeros(len(starts) - 1, dtype=np.bool_)
    _judge_each(need, np.ascontiguousarray(order), starts, good, False)
    return bool(good.all())


def satisfied_each(need: CompiledRequirements, starts: Ints) -> Flags:
    """Tell of each of the consecutive ranges of rows whether it satisfies everything that is counted."""
    good = np.zeros(len(starts) - 1, dtype=np.bool_)
    _judge_each(need, np.arange(starts[-1]), starts, good, True)
    return good
