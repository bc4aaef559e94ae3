"""Who can be made of whom: the largest assignment of candidates to demands, each candidate once."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence


def assign(demands: Sequence[int], candidates: Sequence[Sequence[int]]) -> tuple[dict[int, int], list[int]]:
    """Candidate to demand, and what each demand still lacks; no other assignment leaves less lacking in all.

    The scarcest demand chooses first, and takes what others want least; what is then lacking is found by moving
    candidates along augmenting paths.

    >>> assign([1, 1, 1], [[7, 8], [7], [8]])
    ({7: 1, 8: 2}, [1, 0, 0])
    """
    wanted = Counter(candidate for choice in candidates for candidate in choice)
    owner: dict[int, int] = {}
    lacking = list(demands)
    for d in sorted(range(len(demands)), key=lambda d: (len(candidates[d]), d)):
        for candidate in sorted(candidates[d], key=lambda candidate: (wanted[candidate], candidate)):
            if not lacking[d]:
                break
            if candidate not in owner:
                owner[candidate] = d
                lacking[d] -= 1
    for d in range(len(demands)):
        while lacking[d] and _augment(d, candidates, owner):
            lacking[d] -= 1
    return owner, lacking


def _augment(start: int, candidates: Sequence[Sequence[int]], owner: dict[int, int]) -> bool:
    """Find one more candidate for a demand, if others can do with other candidates."""
    came: dict[int, tuple[int, int]] = {}
    queue = deque([start])
    while queue:
        d = queue.popleft()
        for candidate in candidates[d]:
            holder = owner.get(candidate)
            if holder is None:
                while True:
                    owner[candidate] = d
                    if d == start:
                        return True
                    d, candidate = came[d]
            elif holder != start and holder not in came:
                came[holder] = (d, candidate)
                queue.append(holder)
    return False
