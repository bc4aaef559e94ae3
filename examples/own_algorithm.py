"""A stream algorithm of one's own: the engine keeps the time, the gate keeps the policy."""

from __future__ import annotations

import numpy as np
from visits import policy, visits

from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.formats.frames import payload_of
from stream_anon.stream import Engine
from stream_anon.stream.algorithm import Algorithm
from stream_anon.stream.buffer import Buffer
from stream_anon.stream.group_finder import GroupFinder, first_people


class Oldest(Algorithm):
    """Lets a row that is due leave with the rows that have waited longest."""

    def __init__(self, finder: GroupFinder) -> None:
        self._finder = finder

    def arrive(self, slots):
        """Admit new rows; none of them is ready to leave."""
        self._finder.buffer.admit(slots)
        return len(slots), None

    def complete(self, slot):
        """Join others in the order of their arrival; if the policy refuses the group, as many people again."""
        buffer = self._finder.buffer
        waiting = buffer.waiting()
        subject = buffer.columns.subject[waiting]
        group = self._finder.in_steps(lambda people: first_people(waiting, subject, people))
        return [] if group is None or slot not in group else [group]

    def leave(self, slots):
        """Forget rows that left: nothing is remembered of them."""


schema = Schema.of(policy())
buffer = Buffer(schema.policy.stream.max_buffer)
engine = Engine(schema, buffer, Oldest(GroupFinder(schema, buffer)))
records = [payload_of(visit) for visit in visits(300)]
ref = np.stack([np.zeros(300, dtype=np.int64), np.arange(300)], axis=1)
rows = Encoder(schema).encode(records, ref, np.arange(300) / 100).batch
groups = engine.push(rows, 3.0).groups + engine.flush().groups
print(f"{sum(map(len, groups))} rows in {len(groups)} groups, the smallest of {min(g.people for g in groups)} people")
assert min(group.people for group in groups) >= 5
