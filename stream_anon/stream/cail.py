"""CAIL with transient clusters, the default: each new row opens one, which leaves at once or dissolves."""

from __future__ import annotations

import numpy as np

from stream_anon.core.gate import Group, Reason
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.policy.settings import CailSettings, MaxDelay
from stream_anon.stream.algorithm import Algorithm, Chosen
from stream_anon.stream.group_finder import GroupFinder
from stream_anon.stream.kernels import NEVER, OLD, YOUNG, Due, JoinRule, Memory
from stream_anon.stream.recent import RecentLosses
from stream_anon.stream.sweep import Sweep

LARGE = 32
"""A group is large if fewer than so many times k rows arrive within the delay bound: measured to be better swept."""

EARLY = 0.72
"""The share of the bound after which the buffer is swept: of the waits tried the one with FADS's mean delay."""

SAMPLE = 128
"""Arrivals against which a newcomer's hardness is measured: enough for an average, few enough to cost little."""


class Cail(Algorithm):
    """An algorithm of clusters that form around new rows and around rows that are due.

    1. A newcomer opens a cluster. Waiting rows join it, nearest by CAILDistance first, while the distance stays within
       the threshold: `patience` times the average loss of the last groups. If the cluster comes to satisfy the policy,
       it leaves; if not, it dissolves and its rows go on waiting.
    2. When a row is due, a cluster is completed around it, without a threshold. Rows that are hard to place themselves
       are preferred: from a row's distance its hardness is subtracted, times `opportunity`. Ordinary rows will find
       a cheap group of their own; spending them on an outlier is what makes greedy grouping expensive.
    """

    def __init__(self, finder: GroupFinder, settings: CailSettings) -> None:
        self._finder = finder
        self._buffer = finder.buffer
        self._settings = settings
        self._recent = RecentLosses(settings.memory)
        self._hardness: Floats = np.zeros(0)
        self._sample: Ints = np.zeros((0, 0), dtype=np.int64)
        self._seen = 0

    def _threshold(self) -> float:
        """Return the threshold; negative while no group has left, so that no cluster forms early."""
        if self._settings.threshold is not None:
            return self._settings.threshold
        average = self._recent.average()
        return -1.0 if average is None else self._settings.patience * average

    def arrive(self, slots: Ints) -> tuple[int, Ints | None]:
        """Grow a cluster around each new row, until one leaves."""
        finder, limit = self._finder, self._threshold()
        self._prepare()
        place = 0
        while place < len(slots):
            waiting = self._buffer.waiting()
            taken, members = finder.kernels.arrive(
                finder.columns(),
                np.concatenate([waiting, slots[place:]]),
                len(waiting),
                self._memory(),
                self._hardness,
                finder.need,
                limit,
            )
            self._buffer.admit(slots[place : place + taken])
            self._seen += taken
            place += taken
            group = finder.finish(members, self._buffer.waiting(), limit) if len(members) else None
            if group is not None:
                return place, self._leaving(group)
        return place, None

    def window(self, since: int) -> float:
        """Let large groups leave early, all at once: the buffer is then as full as it is useful."""
        return EARLY if since < EARLY * LARGE * self._finder.need.k else 1.0

    def arrive_batch(self, slots: Ints, delay: MaxDelay, now: float) -> tuple[int, Chosen] | None:
        """Arrive and complete all rows in one call where kernels can judge the policy."""
        finder, enough = self._finder, LARGE * self._finder.need.k
        if not finder.countable or (delay.records is not None and delay.records < enough):
            return None
        self._prepare()
        waiting = self._buffer.waiting()
        settings = self._settings
        rushed = finder.kernels.arrive_batch(
            finder.columns(),
            np.concatenate([waiting, slots]),
            len(waiting),
            self._buffer.latest,
            Due(
                NEVER.arrivals if delay.records is None else delay.records,
                enough,
                NEVER.seconds if delay.time is None else delay.time,
                now,
            ),
            self._memory(),
            self._hardness,
            finder.need,
            JoinRule(
                -1.0 if settings.threshold is None else settings.threshold, settings.patience, settings.opportunity
            ),
        )
        if rushed is None:
            return None
        taken, chosen, sizes, self._recent.count = rushed
        if taken:
            self._buffer.admit(slots[:taken])
        self._seen += taken
        reasons = [Reason.READY if size > 0 else Reason.DEADLINE for size in sizes.tolist()]
        return taken, Chosen([chosen] if len(chosen) else [], np.abs(sizes).tolist(), reasons)

    def complete(self, slot: int) -> list[Ints | Group]:
        """Complete a cluster around the row that is due; where groups are large, clear the buffer."""
        waiting = self._buffer.waiting()
        if self._buffer.latest - self._buffer.columns.serial[slot] < LARGE * self._finder.need.k:
            groups = Sweep(self._finder, waiting, self._hardness).groups(slot)
            rest = waiting[~np.isin(waiting, np.concatenate(groups))] if groups else waiting
            if slot in rest and (left := self._finder.grow(np.array([slot], dtype=np.int64), rest)) is not None:
                groups.append(left)  # a sweep takes one row of each person; some values come only with a second
            return [self._leaving(group) for group in groups]
        others = waiting[waiting != slot]
        group = self._finder.grow(np.array([slot], dtype=np.int64), others, self._bonus(slot, others))
        return [] if group is None else [self._leaving(group)]

    def _bonus(self, due: int, others: Ints) -> Floats:
        """Return the bonus of each candidate: higher for hard-to-place rows, the more the sooner they are due."""
        serial, latest = self._buffer.columns.serial, self._buffer.latest
        age = (latest - serial[others]) / max(latest - serial[due], 1)
        bonus: Floats = self._settings.opportunity * self._hardness[others] * (YOUNG + (OLD - YOUNG) * age)
        return bonus

    def _leaving(self, group: Ints) -> Ints:
        self._recent.add(self._finder.price(group))
        return group

    def leave(self, slots: Ints) -> None:
        """Do nothing: no state is kept about rows."""

    def _memory(self) -> Memory:
        return Memory(self._sample, self._seen, self._recent.losses, self._recent.count)

    def _prepare(self) -> None:
        """Grow the arrays with the buffer."""
        capacity, columns = self._buffer.capacity, self._buffer.columns.qi.shape[1]
        if len(self._hardness) < capacity:
            self._hardness = np.concatenate([self._hardness, np.zeros(capacity - len(self._hardness))])
        if len(self._sample) != columns:
            self._sample = np.zeros((columns, SAMPLE), dtype=np.int64)
