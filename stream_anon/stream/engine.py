"""The engine: a buffer, the delay bound, and an algorithm that chooses company. Whatever leaves, leaves by the gate."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.group import Group, Reason, release_all
from stream_anon.core.hierarchy import Ints
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import StreamSettings
from stream_anon.stream.anonymizer import Outcome
from stream_anon.stream.buffer import Buffer


class Algorithm(Protocol):
    """Chooses which rows leave together. It sees slots of a buffer; a group is an array of slots.

    The engine calls `arrive` for new rows, `complete` for a row that is due, and `leave` for rows that leave, whoever
    decided it. A group must satisfy the policy; the gate checks.
    """

    def arrive(self, slots: Ints) -> tuple[int, Ints | None]:
        """Admit staged rows in order, at most until a group is ready: how many were admitted, and that group."""
        ...

    def complete(self, slot: int) -> Ints | None:
        """A group of waiting rows around the one in `slot`; None if there is none."""
        ...

    def leave(self, slots: Ints) -> None:
        """These rows wait no longer."""
        ...


class Engine:
    """Implements `Anonymizer` for any algorithm.

    A row is due when it has waited `max_delay.time` seconds or seen `max_delay.records` later arrivals. With
    `on_deadline: hold`, a row that cannot be placed stays, as company for later ones, and is tried again at the end.
    """

    def __init__(self, schema: Schema, buffer: Buffer, algorithm: Algorithm, settings: StreamSettings) -> None:
        self._schema = schema
        self._buffer = buffer
        self._algorithm = algorithm
        self._time = settings.max_delay.time
        self._records = settings.max_delay.records
        self._hold = settings.on_deadline == "hold"
        self._chosen: list[tuple[Reason, Ints]] = []
        self._given_up: list[Ints] = []

    def __len__(self) -> int:
        return len(self._buffer)

    def push(self, batch: Batch, now: float) -> Outcome:
        """Take rows in order, one by one; those that find no room are left to the caller."""
        self._schema.requirements.observe(batch)
        taken, groups, suppressed = 0, [], []
        while taken < len(batch) and (room := min(self._buffer.room(), len(batch) - taken)):
            self._arrive(self._buffer.stage(batch.take(slice(taken, taken + room))))
            taken += room
            outcome = self._let_go()
            groups += outcome.groups
            suppressed += [outcome.suppressed] if outcome.suppressed is not None else []
        ticked = self.tick(now)
        suppressed += [ticked.suppressed] if ticked.suppressed is not None else []
        return Outcome(groups + ticked.groups, Batch.concat(suppressed) if suppressed else None, len(batch) - taken)

    def tick(self, now: float) -> Outcome:
        """Release what is due by the clock."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            self._complete(self._buffer.oldest(), Reason.DEADLINE)
        return self._let_go()

    def flush(self) -> Outcome:
        """Release everything, oldest row first; what cannot be placed is suppressed."""
        self._buffer.held[:] = False
        while (slot := self._buffer.oldest()) >= 0:
            self._complete(slot, Reason.FLUSH)
        return self._let_go()

    def next_deadline(self) -> float | None:
        """The oldest row's deadline by the clock."""
        slot = self._buffer.oldest()
        return None if slot < 0 or self._time is None else float(self._buffer.columns.arrived[slot]) + self._time

    def remove(self, ref: Ints) -> Batch:
        """Take rows out, unpublished."""
        slots = self._buffer.find(ref).copy()
        rows = self._buffer.rows(slots)
        self._withdraw(slots)
        self._buffer.free(slots)
        return rows

    def _arrive(self, slots: Ints) -> None:
        """Let staged rows arrive one after the other, and see to the deadlines that their number brings."""
        buffer, serial = self._buffer, self._buffer.columns.serial
        place = 0
        while place < len(slots):
            end = len(slots)
            oldest = buffer.oldest() if self._records is not None else -1
            if oldest >= 0 and self._records is not None:
                end = min(end, place + int(serial[oldest]) + self._records - buffer.latest)
            if end > place:
                taken, group = self._algorithm.arrive(slots[place:end])
                place += taken
                if group is not None:
                    self._choose(group, Reason.READY)
            self._expire_by_count()

    def _expire_by_count(self) -> None:
        if self._records is None:
            return
        while (slot := self._buffer.oldest()) >= 0:
            if self._buffer.latest - int(self._buffer.columns.serial[slot]) < self._records:
                return
            self._complete(slot, Reason.DEADLINE)

    def _complete(self, slot: int, reason: Reason) -> None:
        """Find company for a row that is due; if there is none, the row is given up or held back."""
        group = self._algorithm.complete(slot)
        if group is not None:
            self._choose(group, reason)
        elif self._hold and reason is not Reason.FLUSH:
            self._buffer.held[slot] = True
        else:
            self._given_up.append(np.array([slot], dtype=np.int64))
            self._withdraw(self._given_up[-1])

    def _choose(self, group: Ints, reason: Reason) -> None:
        self._chosen.append((reason, group))
        self._withdraw(group)

    def _withdraw(self, slots: Ints) -> None:
        self._buffer.withdraw(slots)
        self._algorithm.leave(slots)

    def _let_go(self) -> Outcome:
        """Take what was chosen through the gate, and forget it."""
        groups: list[Group] = []
        for reason in dict.fromkeys(reason for reason, _ in self._chosen):
            chosen = [slots for because, slots in self._chosen if because is reason]
            rows = self._buffer.rows(np.concatenate(chosen))
            groups += release_all(rows, [len(slots) for slots in chosen], self._schema, reason)
        suppressed = self._buffer.rows(np.concatenate(self._given_up)) if self._given_up else None
        for slots in (*(slots for _, slots in self._chosen), *self._given_up):
            self._buffer.free(slots)
        self._chosen, self._given_up = [], []
        return Outcome(groups, suppressed)
