"""Signs by which an attacker tells members of a group apart, without their values; the more is known, the more signs.

1. One target: quasi-identifiers and arrival of one person, the published group, and when it left.
2. The members: the same of everybody in the group.
3. Everybody: the same of all rows, so that the groups can be made that quasi-identifiers and people alone would give.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import cell_prices
from stream_anon.core.schema import Schema
from stream_anon.insight.minimality.runs import Run

Flags = npt.NDArray[np.bool_]
Sign = tuple[str, Flags]

TARGET, MEMBERS, EVERYBODY = "one target", "members", "everybody"

LONG = 0.95
"""A row that waited so much of the longest wait was due."""


class Signs:
    """The signs of all members of all groups of a run; `blind` is the run without models that look at values."""

    def __init__(self, schema: Schema, rows: Batch, run: Run, blind: Run) -> None:
        self._schema, self._rows, self._grain = schema, rows, run.grain
        self._people = schema.requirements.k
        self._longest = max((group.left - int(group.members[0]) for group in run.groups), default=0)
        self._blind = np.full(len(rows), -1, dtype=np.int64)
        for number, group in enumerate(blind.groups):
            self._blind[group.members] = number
        self._sizes = np.array([len(group.members) for group in blind.groups] or [0])

    def of(self, members: Ints, left: int) -> Iterator[tuple[str, Sign]]:
        """Yield the signs in one group, with what must be known to see each."""
        qi = self._rows.qi[members]
        ends = self._lone_ends(qi)
        everyone = np.ones(len(members), dtype=np.bool_)
        waited = left - members
        yield TARGET, ("its group left as it came", waited < self._grain)
        yield TARGET, ("it was due", waited >= LONG * self._longest)
        yield TARGET, ("it left before it was due", waited < LONG * self._longest)
        yield TARGET, ("it lies at an end of the box", ends > 0)
        yield TARGET, ("it lies inside of the box", ends == 0)
        yield TARGET, ("its group has more people than needed", everyone & (len(members) > self._people))
        yield MEMBERS, ("it lies furthest from the others", _first(-self._prices_without(qi)))
        yield MEMBERS, ("it came first", _first(members))
        yield MEMBERS, ("it came last", _first(-members))
        yield from self._by_blind_groups(members)

    def _by_blind_groups(self, members: Ints) -> Iterator[tuple[str, Sign]]:
        """Yield the signs that come from the groups that would have been made blindly."""
        parts, part, counts = np.unique(self._blind[members], return_inverse=True, return_counts=True)
        core = part == int(np.argmax(counts))
        whole = (parts >= 0) & (counts == self._sizes[parts])
        several = len(parts) > 1
        yield EVERYBODY, ("it is not of the group's core", ~core)
        yield EVERYBODY, ("it is of the core, and others were added", core & several)
        yield EVERYBODY, ("it is of a whole group that was merged", whole[part] & several)
        yield EVERYBODY, ("it is of a smaller group that was merged", ~core & whole[part])

    def _lone_ends(self, qi: Ints) -> Ints:
        """Count for each row the ends of the box at which it lies alone."""
        found = np.zeros(len(qi), dtype=np.int64)
        for end in (qi.min(axis=0), qi.max(axis=0)):
            at = qi == end
            found += (at & (at.sum(axis=0) == 1)).sum(axis=1)
        return found

    def _prices_without(self, qi: Ints) -> Floats:
        """Return what each row saves the others by not being there."""
        if len(qi) < 2:
            return np.zeros(len(qi))
        inside = [np.delete(qi, i, axis=0) for i in range(len(qi))]
        low, high = np.stack([rows.min(axis=0) for rows in inside]), np.stack([rows.max(axis=0) for rows in inside])
        prices = self._schema.prices
        return np.asarray(-cell_prices(prices.facts, prices.values, low, high) @ prices.weight)


def _first(of: Floats | Ints) -> Flags:
    """Mark the smallest, the first of equals."""
    mark = np.zeros(len(of), dtype=np.bool_)
    mark[int(np.argmin(of))] = True
    return mark
