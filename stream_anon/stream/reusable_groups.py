"""Published groups that may take in a later row of the same kind: reuse, for the baselines, off by default."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.gate import Group, reuse


class ReusableGroups:
    """The last `memory` groups. The gate judges a row together with everybody published under the group's id."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._groups: OrderedDict[str, Group] = OrderedDict()

    def remember(self, groups: Iterable[Group]) -> None:
        """Remember groups that have left; one that adds to another replaces it."""
        for group in groups:
            self._groups[group.id] = group
            self._groups.move_to_end(group.id)
            if len(self._groups) > self._memory:
                self._groups.popitem(last=False)

    def take_in(self, row: Batch, below: float = np.inf) -> Group | None:
        """Return the row as an addition to the cheapest group that can take it, if that costs less than `below`."""
        for host in sorted(self._groups.values(), key=lambda group: group.loss):
            if host.loss >= below:
                return None
            added = reuse(row, host)
            if added is not None:
                self.remember([added])
                return added
        return None
