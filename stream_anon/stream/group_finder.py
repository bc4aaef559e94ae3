"""Find groups for rows under any combination of privacy models: the part all stream algorithms share."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import CailSettings
from stream_anon.stream.buffer import Buffer
from stream_anon.stream.kernels import Columns, Counted, Kernels

_HARDLY = 1e-12
STEPS = 200
"""Rows tried, one by one, for the sake of models that only the gate can judge."""


class GroupFinder:
    """A search for rows of a buffer to group with given ones, by price and by what the policy still misses.

    People and different values are counted inside the kernels. Where the policy asks for more, a group is grown to
    what the kernels can count and then row by row: each time the row that helps the models most per added loss.
    """

    def __init__(self, schema: Schema, buffer: Buffer, kernels: Kernels) -> None:
        self.buffer = buffer
        self.kernels = kernels
        self._requirements = schema.requirements
        distinct = schema.requirements.distinct_only
        self.countable = distinct is not None
        values = np.zeros(len(schema.sensitive), dtype=np.int64)
        for column, l in distinct or []:  # noqa: E741 - the literature's name
            values[column] = max(values[column], l)
        self.need = Counted(schema.requirements.k, values)

    def columns(self) -> Columns:
        """Return the columns of the buffer that kernels read."""
        columns = self.buffer.columns
        return Columns(columns.qi, columns.subject, columns.sensitive, columns.serial, columns.arrived)

    def holds(self, slots: Ints) -> bool:
        """Tell whether these rows may leave together."""
        return self._requirements.holds(self.buffer.rows(slots))

    def price(self, slots: Ints) -> float:
        """Return what these rows lose together."""
        rows = self.buffer.columns.qi[slots]
        return self.kernels.box_price(rows.min(axis=0), rows.max(axis=0))

    def grow(self, seed: Ints, candidates: Ints, bonus: Floats | None = None, limit: float = np.inf) -> Ints | None:
        """Grow a group of the seed and its nearest candidates that satisfies the policy; None if there is none."""
        candidates = candidates[~np.isin(candidates, seed)] if bonus is None else candidates
        bonus = np.zeros(len(candidates)) if bonus is None else bonus
        members, _ = self.kernels.grow(self.columns(), seed, candidates, bonus, self.need, limit)
        if len(members):
            return self.finish(members, candidates, limit)
        # The kernels take one row of each person; a second one may still bring the value that is missing.
        return self._satisfy(seed, candidates, limit) if self.countable and limit == np.inf else None

    def grow_dense(self, seed: int, candidates: Ints) -> Ints | None:
        """Grow a large group around the seed by density; None if there is none."""
        others = candidates[candidates != seed]
        members, _ = self.kernels.grow_dense(self.columns(), seed, others, self.need)
        return self.finish(members, others) if len(members) else None

    def finish(self, members: Ints, candidates: Ints, limit: float = np.inf) -> Ints | None:
        """Complete a group for the models that the kernels do not know; None if that fails."""
        return members if self.countable else self._satisfy(members, candidates, limit)

    def gather(self, seed: Ints, ordered: Ints) -> Ints | None:
        """Make a group of the seed and the first of the ordered rows that help; None if they do not suffice."""
        subject, sensitive = self.buffer.columns.subject, self.buffer.columns.sensitive
        members = seed.tolist()
        people = set(subject[seed].tolist())
        seen = [set(sensitive[seed, s].tolist()) for s in range(len(self.need.values))]
        for slot in ordered.tolist():
            lacking = [int(wanted) - len(values) for wanted, values in zip(self.need.values, seen, strict=True)]
            if len(people) >= self.need.k and max(lacking, default=0) <= 0:
                break
            seats = max(self.need.k - len(people), 1)
            urgent = [s for s, lack in enumerate(lacking) if lack > 0 and lack >= seats]
            if subject[slot] in people or (urgent and all(sensitive[slot, s] in seen[s] for s in urgent)):
                continue
            members.append(slot)
            people.add(int(subject[slot]))
            for s, values in enumerate(seen):
                values.add(int(sensitive[slot, s]))
        group = np.array(members, dtype=np.int64)
        return group if self.holds(group) else self._satisfy(group, ordered, np.inf)

    def _satisfy(self, members: Ints, candidates: Ints, limit: float) -> Ints | None:
        """Add rows until every model holds: each time the one that helps most per added loss.

        If no row helps, the member that stands in the way most leaves again, for good; if none does, the nearest row
        joins all the same, for it may help later. The first member stays. Gives up after `STEPS` steps: no search of
        this kind can be complete, and a policy that cannot be satisfied must not hold up the stream.
        """
        buffer = self.buffer
        rest = candidates[~np.isin(candidates, members)]
        if self._is_hopeless(np.concatenate([members, rest])):
            return None
        for _ in range(STEPS):
            if self.holds(members):
                return members
            rows = buffer.rows(members)
            low, high = rows.qi.min(axis=0), rows.qi.max(axis=0)
            before = self.kernels.box_price(low, high)
            added = self.kernels.union_prices(buffer.columns.qi, rest, low, high) - before
            reach = added <= limit
            gains = self._requirements.gains(rows, buffer.rows(rest))
            useful = reach & (gains > _HARDLY)
            if useful.any():
                score = np.where(useful, gains / (added + _price_of_a_seat(before, len(members))), -1.0)
                best = int(np.argmax(score))
            elif (blocking := self._blocking(members)) is not None:
                members = np.delete(members, blocking)
                continue
            elif reach.any():
                best = int(np.argmin(np.where(reach, added, np.inf)))
            else:
                return None
            members, rest = np.append(members, rest[best]), np.delete(rest, best)
        return None

    def _blocking(self, members: Ints) -> int | None:
        """Return the place of the member whose removal brings the group nearest to the policy; never the first."""
        distance = self._requirements.distance(self.buffer.rows(members)) - _HARDLY
        found = None
        for place in range(1, len(members)):
            without = self._requirements.distance(self.buffer.rows(np.delete(members, place)))
            if without < distance:
                found, distance = place, without
        return found

    def _is_hopeless(self, slots: Ints) -> bool:
        """Tell whether no subset of these rows can be a group: too few people or countable values."""
        people = len(np.unique(self.buffer.columns.subject[slots]))
        return people < self.need.k or not self._requirements.ready() or (self.countable and not self.holds(slots))


def _price_of_a_seat(loss: float, size: int) -> float:
    """Return the cost of a row that widens nothing: the group's loss per row, as others cannot use the row."""
    return max(loss / size, _HARDLY)


def kernels_of(schema: Schema, compiled: bool | None = None) -> Kernels:
    """Return kernels for the loss that the policy's algorithm uses."""
    counting = schema.policy.algorithm.loss if isinstance(schema.policy.algorithm, CailSettings) else "ncp"
    prices, hierarchies = schema.counted(counting)
    return Kernels(prices, hierarchies) if compiled is None else Kernels(prices, hierarchies, compiled)
