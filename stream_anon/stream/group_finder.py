"""Find groups for rows by their quasi-identifiers and people alone: the part that the simpler algorithms share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stream_anon.core.hierarchy import Floats, Hierarchy, Ints
from stream_anon.core.judging.veto import Veto
from stream_anon.core.kernels import Prices
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import CailSettings
from stream_anon.stream.buffer import Buffer
from stream_anon.stream.kernels.rounds import nearest_people

MANY = 8
"""Fewer rows than so many times the people of a group say little about what those who stay will have."""


class GroupFinder:
    """Prices of boxes over a buffer, and a search for the nearest people that no sensitive value has a part in.

    The veto judges what was found. If it says no, as many people again join, nearest first, and so on: nobody is chosen
    for a value, and the sizes at which a group is judged are known beforehand.
    """

    def __init__(self, schema: Schema, buffer: Buffer) -> None:
        self.buffer = buffer
        self.veto = Veto(schema)
        self._prices, self._hierarchies = _counted(schema)
        self._log2: Floats = np.zeros(1)

    @property
    def people(self) -> int:
        """How many people a group is to have."""
        return self.veto.people

    def box_prices(self, low: Ints, high: Ints) -> Floats:
        """Return the price of each box."""
        total = np.zeros(len(low))
        for q, hierarchy in enumerate(self._hierarchies):
            total += self._prices.weight[q] * hierarchy.loss(low[:, q], high[:, q])
        return total

    def price(self, slots: Ints) -> float:
        """Return what these rows lose together."""
        rows = self.buffer.columns.qi[slots]
        return float(self.box_prices(rows.min(axis=0)[None], rows.max(axis=0)[None])[0])

    def prices_with(self, slot: int, slots: Ints) -> Floats:
        """Return the price of one row together with each of others."""
        qi = self.buffer.columns.qi
        return self.box_prices(np.minimum(qi[slots], qi[slot]), np.maximum(qi[slots], qi[slot]))

    def holds(self, slots: Ints) -> bool:
        """Tell whether these rows may leave together."""
        return self.veto.holds(self.buffer.columns, slots)

    def passes(self, slots: Ints) -> bool:
        """Tell the same of rows that are judged for the first time: then a decoy may be refused, too."""
        self.veto.heed()
        return bool(self.veto.passes(self.buffer.columns, [slots])[0]) and self.may_go(slots)

    def may_go(self, slots: Ints) -> bool:
        """Tell whether these rows may leave together, and do not take along what those who stay would need."""
        if not self.holds(slots):
            return False
        waiting = self.buffer.waiting()
        rest = waiting[~np.isin(waiting, slots)]
        return self.veto.blind or len(rest) < MANY * self.people or self.veto.possible(self.buffer.columns, rest)

    def grow(self, seed: Ints) -> Ints | None:
        """Return a group of the seed and the waiting rows nearest to it by CAILDistance; None if there is none."""
        waiting, columns = self.buffer.waiting(), self.buffer.columns
        others = waiting[~np.isin(waiting, seed)]
        if len(self._log2) <= len(waiting):
            self._log2 = np.log2(np.maximum(np.arange(2 * len(waiting) + 1), 1))

        def nearest(people: int) -> Ints:
            return nearest_people(self._prices, columns.qi, columns.subject, seed, others, people, np.inf, self._log2)

        return self.in_steps(nearest)

    def in_steps(self, nearest: Callable[[int], Ints]) -> Ints | None:
        """Return the first group that may leave of those with `people`, twice as many, and so on; None if none may."""
        columns = self.buffer.columns
        everyone = len(np.unique(columns.subject[self.buffer.waiting()]))
        wanted = min(self.people, max(everyone, 1))
        found = nearest(wanted)
        if len(found) and self.passes(found):
            return found
        while wanted < everyone:
            wanted = min(everyone, wanted + self.people)
            found = nearest(wanted)
            if len(found) and self.may_go(found):
                return found
        waiting = self.buffer.waiting()
        return waiting.copy() if self.holds(waiting) else None


def first_people(rows: Ints, subject: Ints, people: int) -> Ints:
    """Return the first row of each of the first so many people, in the order of the rows."""
    _, first = np.unique(subject, return_index=True)
    return np.asarray(rows[np.sort(first)[:people]])


def _counted(schema: Schema) -> tuple[Prices, list[Hierarchy]]:
    """Return prices for the loss that the policy's algorithm uses."""
    settings = schema.policy.algorithm
    return schema.counted(settings.loss if isinstance(settings, CailSettings) else "ncp")
