"""Count who looks the same before and after: records by equal quasi-identifiers, and the people behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Ints
from stream_anon.core.privacy.base import distinct_each
from stream_anon.core.publish import rows_of, together

Classes = list[tuple[int, int]]
"""(people, records) of each class."""


def classes_before(groups: Sequence[Group]) -> Classes:
    """Return the classes of raw records of the groups, by their exact quasi-identifiers."""
    if not groups:
        return []
    exact, people = _rows_of(groups)
    order = np.lexsort(exact.T)
    changes = np.any(np.diff(exact[order], axis=0), axis=1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.concatenate([[0], np.cumsum(changes)])
    return _counted(place, people)


def classes_after(groups: Sequence[Group]) -> Classes:
    """Return the classes of published records: groups with equal labels look like one class."""
    if not groups:
        return []
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(repr(group.labels), len(numbers)) for group in groups]
    return _counted(np.repeat(places, [len(group) for group in groups]), _rows_of(groups)[1])


def _rows_of(groups: Sequence[Group]) -> tuple[Ints, Ints]:
    """Return the positions of the rows of some groups, one group after the other, and who they are about."""
    found = [(released.rows, rows_of(released.starts, places)[0]) for released, places in together(groups)]
    return np.concatenate([rows.qi[some] for rows, some in found]), np.concatenate(
        [r.subject[some] for r, some in found]
    )


def _counted(place: Ints, people: Ints) -> Classes:
    order = np.argsort(place, kind="stable")
    starts = np.append(np.flatnonzero(np.diff(place[order], prepend=-1)), len(order))
    counts = np.diff(starts)
    return list(zip(distinct_each(people[order], starts).tolist(), counts.tolist(), strict=True))
