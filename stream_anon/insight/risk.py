"""Count who looks the same before and after: records by equal quasi-identifiers, and the people behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Ints
from stream_anon.core.privacy.base import distinct_each

Classes = list[tuple[int, int]]
"""(people, records) of each class."""


def classes_before(groups: Sequence[Group]) -> Classes:
    """Return the classes of raw records of the groups, by their exact quasi-identifiers."""
    if not groups:
        return []
    exact = np.concatenate([group.rows.qi for group in groups])
    _, place = np.unique(exact, axis=0, return_inverse=True)
    return _counted(place.reshape(-1), groups)


def classes_after(groups: Sequence[Group]) -> Classes:
    """Return the classes of published records: groups with equal labels look like one class."""
    if not groups:
        return []
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(repr(group.labels), len(numbers)) for group in groups]
    return _counted(np.repeat(places, [len(group) for group in groups]), groups)


def _counted(place: Ints, groups: Sequence[Group]) -> Classes:
    people = np.concatenate([group.rows.subject for group in groups])
    order = np.argsort(place, kind="stable")
    starts = np.append(np.flatnonzero(np.diff(place[order], prepend=-1)), len(order))
    counts = np.diff(starts)
    return list(zip(distinct_each(people[order], starts).tolist(), counts.tolist(), strict=True))
