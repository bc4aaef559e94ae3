"""A stream algorithm of one's own: the engine keeps the time, the gate keeps the policy, the check the contract."""

from __future__ import annotations

from typing import Literal

import numpy as np
from visits import policy, visits

import stream_anon
from stream_anon.policy.settings import STREAM_ALGORITHMS, StreamAlgorithmSettings
from stream_anon.stream.algorithm import Algorithm
from stream_anon.testing import check_algorithm


class Oldest(Algorithm):
    """Lets a row that is due leave with the rows that have waited longest."""

    def __init__(self, schema, buffer):
        self._requirements, self._buffer = schema.requirements, buffer

    def arrive(self, slots):
        """Admit new rows; none of them is ready to leave."""
        self._buffer.admit(slots)
        return len(slots), None

    def complete(self, slot):
        """Join others in the order of their arrival until every privacy model holds."""
        waiting = self._buffer.waiting()
        others = waiting[waiting != slot]
        k = self._requirements.k
        for size in (*range(k - 1, len(others), k), len(others)):  # by k at a time: nobody is chosen for a value
            group = np.concatenate([[slot], others[:size]])
            if self._requirements.holds(self._buffer.rows(group)):
                return [group]
        return []

    def leave(self, slots):
        """Forget rows that left: nothing is remembered of them."""


class OldestSettings(StreamAlgorithmSettings):
    """The rows that have waited longest leave together."""

    name: Literal["oldest"]

    def build(self, schema, buffer):
        return Oldest(schema, buffer)


check_algorithm(OldestSettings(name="oldest"))

STREAM_ALGORITHMS.add(OldestSettings)  # for this program; installed: an entry point of stream_anon.stream_algorithms
anonymizer = stream_anon.Anonymizer(policy(algorithm={"name": "oldest"}))
groups = [*anonymizer.feed(visits(300), now=0.0), *anonymizer.finish()]
print(f"{sum(map(len, groups))} rows in {len(groups)} groups, the smallest of {min(g.people for g in groups)} people")
assert min(group.people for group in groups) >= 5
