"""Which single records are read in one go."""

from __future__ import annotations

_NEAR = 2_000  # offsets this close are read in one go; farther ones cost a seek


def stretches(offsets: list[int]) -> list[list[int]]:
    """Sorted offsets, split where the gap is wide.

    >>> stretches([1, 5, 9000])
    [[1, 5], [9000]]
    """
    parts: list[list[int]] = []
    for offset in offsets:
        if parts and offset - parts[-1][-1] <= _NEAR:
            parts[-1].append(offset)
        else:
            parts.append([offset])
    return parts
