"""FADS, a baseline: no standing clusters, every group is the oldest row and its nearest neighbours."""

from __future__ import annotations

import numpy as np

from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Ints
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.group_finder import GroupFinder, first_people
from stream_anon.stream.reusable_groups import ReusableGroups


class Fads(Algorithm):
    """An algorithm in which a due row leaves with the k - 1 people nearest to it (Guo and Zhang, 2013).

    With `reusable` it joins a group that has left, if that can take it and costs less. Nearness is the price of the two
    rows alone. Where the policy refuses the group, as many people again join, the nearest first.
    """

    def __init__(self, finder: GroupFinder, reusable: ReusableGroups | None) -> None:
        self._finder = finder
        self._reusable = reusable

    def arrive(self, slots: Ints) -> tuple[int, Ints | None]:
        """Admit the rows; they only wait."""
        self._finder.buffer.admit(slots)
        return len(slots), None

    def complete(self, slot: int) -> list[Ints] | Group:
        """Return the row with its nearest neighbours, or its addition to a group that has left."""
        finder = self._finder
        waiting = finder.buffer.waiting()
        near = waiting[np.argsort(finder.prices_with(slot, waiting), kind="stable")]
        near = np.concatenate([near[near == slot], near[near != slot]])
        subject = finder.buffer.columns.subject[near]
        group = finder.in_steps(lambda people: first_people(near, subject, people))
        if self._reusable is not None:
            price = np.inf if group is None else finder.price(group)
            added = self._reusable.take_in(finder.buffer.rows(np.array([slot])), below=price)
            if added is not None:
                return added
        return [] if group is None else [group]

    def leave(self, slots: Ints) -> None:
        """Do nothing: no state is kept about rows."""
