"""Bipartite matching: assign as many candidates as possible to demands, each candidate once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def assign(demands: Sequence[int], candidates: Sequence[Ints], space: int) -> tuple[Ints, list[int]]:
    """Return which demand each of the candidates 0 to `space` - 1 serves (-1 for none), and what each demand lacks.

    No other assignment leaves less lacking in all. The scarcest demand chooses first, and takes what others want least;
    what is then lacking is found by moving candidates along augmenting paths.

    >>> assign([1, 1, 1], [np.array([0, 1]), np.array([0]), np.array([1])], space=3)
    (array([ 1,  2, -1]), [1, 0, 0])
    """
    wanted, owner = np.zeros(space, dtype=np.int64), np.full(space, -1, dtype=np.int64)
    for choice in candidates:
        wanted[choice] += 1
    lacking = list(demands)
    for d in sorted(range(len(demands)), key=lambda d: len(candidates[d])):
        free = candidates[d][owner[candidates[d]] < 0]
        taken = free[np.argsort(wanted[free], kind="stable")[: lacking[d]]]
        owner[taken] = d
        lacking[d] -= len(taken)
    for d in range(len(demands)):
        while lacking[d] and _augment(d, candidates, owner):
            lacking[d] -= 1
    return owner, lacking


def largest(demands: Sequence[int], candidates: Sequence[Ints]) -> int:
    """Return how many demands can be met, with candidates of any numbers.

    >>> largest([2, 1], [np.array([7, 9]), np.array([9])])
    2
    """
    order = sorted(range(len(demands)), key=lambda d: len(candidates[d]))
    before = 0
    for d in order:
        before += demands[d]
        if len(candidates[d]) < before:
            break
    else:
        return before  # whatever the others took, each finds enough
    numbers, place = np.unique(np.concatenate(candidates), return_inverse=True)
    ends = np.cumsum([len(choice) for choice in candidates])
    _, lacking = assign(demands, np.split(place, ends[:-1]), len(numbers))
    return sum(demands) - sum(lacking)


def _augment(start: int, candidates: Sequence[Ints], owner: Ints) -> bool:
    """Find one more candidate for a demand by moving other demands to other candidates."""
    came: dict[int, tuple[int, int]] = {}
    queue = deque([start])
    while queue:
        d = queue.popleft()
        choice = candidates[d]
        holders = owner[choice]
        free = np.flatnonzero(holders < 0)
        if len(free):
            candidate = int(choice[free[0]])
            while True:
                owner[candidate] = d
                if d == start:
                    return True
                d, candidate = came[d]
        for holder, first in zip(*(part.tolist() for part in np.unique(holders, return_index=True)), strict=True):
            if holder != start and holder not in came:
                came[holder] = (d, int(choice[first]))
                queue.append(holder)
    return False
