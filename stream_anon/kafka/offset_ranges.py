"""Group single offsets into ranges that are read at once."""

from __future__ import annotations

_NEAR = 2_000  # offsets this close are read in one go; farther ones cost a seek


def offset_ranges(offsets: list[int]) -> list[list[int]]:
    """Split sorted offsets into ranges where the gap is wide.

    >>> offset_ranges([1, 5, 9000])
    [[1, 5], [9000]]
    """
    parts: list[list[int]] = []
    for offset in offsets:
        if parts and offset - parts[-1][-1] <= _NEAR:
            parts[-1].append(offset)
        else:
            parts.append([offset])
    return parts
