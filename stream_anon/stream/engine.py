"""The engine: a buffer, the delay bound, and an algorithm that chooses groups. Every group passes the gate."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import UNNUMBERED, Batch
from stream_anon.core.gate import Group, Reason, release_all
from stream_anon.core.hierarchy import Ints
from stream_anon.core.schema import Schema
from stream_anon.stream.algorithm import Algorithm, Chosen
from stream_anon.stream.buffer import Buffer
from stream_anon.stream.outcome import Outcome, always
from stream_anon.stream.reusable_groups import ReusableGroups
from stream_anon.stream.stranded import take_in

PATIENT, MANY = 16, 64
"""After a search that found no group, another one waits until the waiting rows have grown by one in so many: it costs
less, and a group does not leave at the very arrival of whoever was needed. Or until so many have been given up, of few
rows any one: what all of them break, fewer may satisfy."""


class Engine:
    """The implementation of `StreamEngine` for any algorithm.

    A row is due when it has waited `max_delay.time` seconds or seen `max_delay.records` later arrivals. With
    `on_deadline: hold`, a row that cannot be placed stays, available to later groups, and is tried again at the end.
    """

    def __init__(
        self, schema: Schema, buffer: Buffer, algorithm: Algorithm, reusable: ReusableGroups | None = None
    ) -> None:
        self._schema = schema
        self._buffer = buffer
        self._algorithm = algorithm
        settings = schema.policy.stream
        self._time = settings.max_delay.time
        self._records = settings.max_delay.records
        self._hold = settings.on_deadline == "hold"
        self._chosen = Chosen([], [], [])
        self._given_up: list[Ints] = []
        self._added: list[Group] = []  # rows added to groups that had left, and their slots
        self._joined: list[Ints] = []
        self._reusable = reusable
        self._now = 0.0
        self._hopeless = 0  # no search before so many rows have arrived,
        self._few = math.inf  # or no more than so many wait
        self._patient = UNNUMBERED  # the row that was seen to early, in vain: it waits for its deadline

    def __len__(self) -> int:
        return len(self._buffer)

    @property
    def open_clusters(self) -> int:
        """The number of clusters that rows wait in, where the algorithm keeps some."""
        return self._algorithm.open_clusters

    def push(self, batch: Batch, now: float, more: Callable[[], bool] = always) -> Outcome:
        """Take rows in order, one by one; those that find no room are left to the caller."""
        taken, groups, suppressed = 0, [], []
        self._now = now
        while taken < len(batch) and (room := min(self._buffer.room(), len(batch) - taken)):
            rows = batch if room == len(batch) else batch.take(slice(taken, taken + room))
            fresh = rows.serial == UNNUMBERED
            facts = rows.facts
            self._schema.requirements.observe(facts if fresh.all() else facts.take(fresh))  # others were seen before
            self._arrive(self._buffer.stage(rows), fresh, more)
            taken += room
            outcome = self._release_chosen()
            groups += outcome.groups
            suppressed += [outcome.suppressed] if outcome.suppressed is not None else []
        crowded_out = [group for group in groups if group.reason is Reason.DEADLINE]
        ticked = self.tick(now, more=more)
        suppressed += [ticked.suppressed] if ticked.suppressed is not None else []
        gone = Batch.concat(suppressed) if suppressed else None
        return Outcome(groups + ticked.groups, gone, len(batch) - taken, crowded_out)

    def tick(self, now: float, closing: bool = False, more: Callable[[], bool] = always) -> Outcome:
        """Release the rows that are due by the clock, one after the other while `more` says so; at least one.

        `closing`: nothing will arrive any more. No group leaves that the rows behind it need: if those are too few to
        be a group of their own, they leave at once, and a row without a group joins one that leaves with them.
        """
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            slot = self._buffer.oldest()
            late = self._time is not None and now >= float(self._buffer.columns.arrived[slot]) + self._time
            self._complete(slot, Reason.DEADLINE, late or self._outnumbered(slot))
            if not more():
                break
        if not closing:
            return self._release_chosen()
        if not self._enough_left():
            return self.flush()
        self._take_in()
        return self._release_chosen()

    def flush(self, more: Callable[[], bool] = always) -> Outcome:
        """Release everything, oldest row first, while `more` says so; suppress what no group that leaves can hold."""
        self._buffer.held[:] = False
        self._few = math.inf
        self._choose(self._algorithm.clear(), Reason.FLUSH)
        while (slot := self._buffer.oldest()) >= 0:
            self._complete(slot, Reason.FLUSH)
            if not more():
                break
        self._take_in()
        return self._release_chosen()

    def _take_in(self) -> None:
        """Let rows that were given up join groups that have not left yet."""
        if self._given_up:
            stranded = np.concatenate(self._given_up)
            self._chosen, left = take_in(stranded, self._chosen, self._buffer.columns, self._schema)
            self._given_up = [left] if len(left) else []

    def _enough_left(self) -> bool:
        """Tell whether the waiting rows could still be a group; usually the youngest are enough to decide."""
        waiting, requirements = self._buffer.waiting(), self._schema.requirements
        if not len(waiting):
            return True
        for part in (waiting[-8 * requirements.k :], waiting):
            people = len(np.unique(self._buffer.columns.subject[part]))
            more = requirements.distinct_only  # of the other models none is asked: they may hold for a part, or later
            if people >= requirements.k and (not more or requirements.holds(self._buffer.rows(part))):
                return True
        return False

    def next_deadline(self) -> float | None:
        """Return the deadline of the oldest row by the clock; of one that is due by its number, long ago."""
        slot = self._buffer.oldest()
        if slot >= 0 and self._records is not None and self._since(slot) >= self._patience(slot, self._records):
            return -math.inf
        if slot < 0 or self._time is None:
            return None
        return float(self._buffer.columns.arrived[slot]) + self._time * self._window(slot, self._since(slot))

    def _since(self, slot: int) -> int:
        """Return how many rows arrived after this one."""
        return self._buffer.latest - int(self._buffer.columns.serial[slot])

    def _used(self, serial: int, arrived: float) -> float:
        """Return which share of the bound a row has used, by its serial number or its arrival."""
        by_count = (self._buffer.latest - serial) / self._records if self._records else 0.0
        return max(by_count, (self._now - arrived) / self._time if self._time else 0.0)

    def _window(self, slot: int, since: int) -> float:
        """Return the share of the bound after which the algorithm first tries this row; all of it once that failed."""
        patient = int(self._buffer.columns.serial[slot]) == self._patient
        return 1.0 if patient else self._algorithm.window(since)

    def waiting(self) -> Batch:
        """Return a copy of the rows that wait, oldest first."""
        return self._buffer.rows(self._buffer.waiting().copy())

    def take_back(self, rows: Batch) -> None:
        """Let rows wait again that were exported from another engine; what is due leaves at the next tick."""
        self._arrive(self._buffer.stage(rows), np.zeros(len(rows), dtype=np.bool_))

    def remove(self, ref: Ints) -> Batch:
        """Remove rows from the buffer without publishing them and return them."""
        slots = self._buffer.find(ref).copy()
        rows = self._buffer.rows(slots)
        self._withdraw(slots)
        self._buffer.free(slots)
        return rows

    def _outnumbered(self, slot: int) -> bool:
        """Tell whether as many rows as are allowed arrived after this one."""
        return self._records is not None and self._since(slot) >= self._records

    def _arrive(self, slots: Ints, fresh: npt.NDArray[np.bool_], more: Callable[[], bool] = always) -> None:
        """Let staged rows arrive one after the other, and complete the rows that become due by their number.

        Neighbours that are handed back arrive together: being due at once, they can still form a group.
        """
        for part in np.split(np.arange(len(slots)), np.flatnonzero(np.diff(fresh)) + 1):
            place, stop = int(part[0]), int(part[-1]) + 1
            while place < stop:
                if fresh[place] and (rushed := self._arrive_batch(slots[place:stop], more)):
                    place += rushed
                    continue
                end = min(stop, place + self._until_due(int(slots[place]))) if fresh[place] else stop
                taken, group = self._algorithm.arrive(slots[place:end])
                place += taken
                if group is not None:
                    self._choose([group], Reason.READY)
                if fresh[part[0]] or place == stop:
                    self._expire_by_count(more)

    def _arrive_batch(self, slots: Ints, more: Callable[[], bool]) -> int:
        """Take new rows in one call if the algorithm can; return how many it took."""
        found = self._algorithm.arrive_batch(slots, self._until_due(int(slots[0])))
        if found is None:
            return 0
        taken, groups = found
        self._choose(groups, Reason.READY)
        self._expire_by_count(more)
        for early in self._algorithm.ahead(self._used):
            self._choose(early, Reason.READY)
            if not more():
                break
        return taken

    def _until_due(self, slot: int) -> int:
        """Return how many new rows, from this one on, may arrive until a waiting row, or the first of them, is due."""
        if self._records is None:
            return self._buffer.limit
        oldest, serial = self._buffer.oldest(), self._buffer.columns.serial
        first = oldest if oldest >= 0 else slot
        return max(1, int(serial[first] - serial[slot]) + self._patience(first, self._records) + 1)

    def _patience(self, slot: int, records: int) -> int:
        """Return after how many later arrivals a row is tried; not more than the bound."""
        early = math.ceil(records * self._window(slot, 0))
        return math.ceil(records * self._window(slot, early))

    def _expire_by_count(self, more: Callable[[], bool]) -> None:
        """Complete the rows that are due by their number, while `more` says so; `tick` goes on where this stopped."""
        while self._records is not None and (slot := self._buffer.oldest()) >= 0:
            if self._since(slot) < self._patience(slot, self._records):
                return
            self._complete(slot, Reason.DEADLINE, self._outnumbered(slot))
            if not more():
                return

    def _complete(self, slot: int, reason: Reason, last: bool = True) -> None:
        """Find groups so that a row can leave; if there are none, give it up or hold it back once it is due."""
        ended = reason is Reason.FLUSH
        waiting = len(self._buffer)
        hopeless = waiting > self._few and (ended or self._buffer.latest < self._hopeless)
        found = [] if hopeless else self._algorithm.complete(slot)
        if isinstance(found, Group):
            self._added.append(found)
            self._joined.append(np.array([slot], dtype=np.int64))
            self._withdraw(self._joined[-1])
            return
        self._choose(found, reason)
        if any((group == slot).any() for group in found):
            return
        if not hopeless:
            self._hopeless = self._buffer.latest + waiting // PATIENT
            self._few = waiting - (waiting // PATIENT if waiting >= MANY else 1)
        if not last:
            self._patient = int(self._buffer.columns.serial[slot])
        elif self._hold and not ended:
            self._buffer.held[slot] = True
        else:
            self._given_up.append(np.array([slot], dtype=np.int64))
            self._withdraw(self._given_up[-1])

    def _choose(self, groups: list[Ints], reason: Reason) -> None:
        if groups:
            self._chosen.add(Chosen(groups, [len(group) for group in groups], [reason] * len(groups)))
            self._withdraw(np.concatenate(groups))

    def _withdraw(self, slots: Ints) -> None:
        self._buffer.withdraw(slots)
        self._algorithm.leave(slots)

    def _release_chosen(self) -> Outcome:
        """Pass the chosen groups through the gate and clear the selection."""
        groups: list[Group] = []
        slots, sizes, reasons = self._chosen
        if slots:
            groups = release_all(self._buffer.everything, np.concatenate(slots), sizes, self._schema, reasons)
        if self._reusable is not None:
            self._reusable.remember(groups)
        suppressed = self._buffer.rows(np.concatenate(self._given_up)) if self._given_up else None
        gone = slots + self._given_up + self._joined
        if gone:
            self._buffer.free(np.concatenate(gone))
        groups += self._added
        self._chosen, self._given_up, self._added, self._joined = Chosen([], [], []), [], [], []
        return Outcome(groups, suppressed)
