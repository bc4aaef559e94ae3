"""The buffer of waiting rows: columns of slots. A row keeps its slot until it has left; slots are reused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from stream_anon.core.batch import UNNUMBERED, Batch, Objects
from stream_anon.core.hierarchy import Ints

_FIRST_SIZE, _MANY = 1024, 65_536
_FACTS = tuple(name for name in Batch.__struct_fields__ if name != "values")
_NONE = np.empty(0, dtype=np.int64)


class Buffer:
    """The rows in slots, and the order in which they arrived.

    A row is staged (its slot is filled), admitted (it waits and may be chosen for a group), withdrawn (it has been
    chosen, or given up) and freed (its slot may be used again). `columns` has one place per slot and holds what decides
    about groups; what is published unchanged lies apart from it, joined by the slot alone.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.columns: Batch = _no_columns()
        self._values: Objects = self.columns.values
        self.latest = -1  # the highest serial number admitted
        self.held = np.zeros(0, dtype=np.bool_)  # rows that wait beyond their deadline, by the policy's will
        self._next_serial = 0
        self._free = _NONE
        self._waiting = np.zeros(0, dtype=np.bool_)
        self._queue = np.empty(_FIRST_SIZE, dtype=np.int64)  # slots in the order of their serial numbers
        self._length = 0
        self._first = 0  # no row before this place of the queue waits any more
        self._count = 0
        self._gaps = False

    def __len__(self) -> int:
        return self._count

    @property
    def capacity(self) -> int:
        """The number of slots; grows when needed."""
        return len(self._waiting)

    def room(self) -> int:
        """Return how many more rows may be staged."""
        return self.limit - (self.capacity - len(self._free))

    def stage(self, batch: Batch) -> Ints:
        """Fill slots with rows, number those that have no number yet, and return the slots in row order."""
        n = len(batch)
        self._ensure(batch.take(slice(0, 0)), n)
        slots, self._free = self._free[len(self._free) - n :], self._free[: len(self._free) - n]
        for name in _FACTS:
            getattr(self.columns, name)[slots] = getattr(batch, name)
        self._values[slots] = batch.values
        fresh = batch.serial == UNNUMBERED
        first = max(self._next_serial, int(batch.serial.max(initial=UNNUMBERED)) + 1)
        self.columns.serial[slots] = np.where(fresh, first + np.cumsum(fresh) - 1, batch.serial)
        self._next_serial = first + int(fresh.sum())
        return slots

    def admit(self, slots: Ints) -> None:
        """Let staged rows wait from now on."""
        end = self._length + len(slots)
        if end > len(self._queue):
            self._queue = np.concatenate([self._queue[: self._length], np.empty(2 * end, dtype=np.int64)])
        self._queue[self._length : end] = slots
        self._length = end
        self._waiting[slots] = True
        self._count += len(slots)
        serial = self.columns.serial[slots]
        if (serial <= self.latest).any() or (serial[1:] < serial[:-1]).any():  # handed back: to their old place
            self._close_gaps()
            end = self._length
            order = np.argsort(self.columns.serial[self._queue[:end]], kind="stable")
            self._queue[:end] = self._queue[:end][order]
        self.latest = max(self.latest, int(serial.max()))

    def withdraw(self, slots: Ints) -> None:
        """Stop these rows from waiting."""
        self._waiting[slots] = False
        self.held[slots] = False
        self._count -= len(slots)
        self._gaps = True

    def free(self, slots: Ints) -> None:
        """Free the slots of withdrawn rows that have left."""
        self._close_gaps()  # before a slot in the queue can mean another row
        self._values[slots] = None
        self._free = np.concatenate([self._free, slots[::-1]])

    def waiting(self) -> Ints:
        """Return the slots of all waiting rows, oldest first: a view, valid until rows are admitted or withdrawn."""
        self._close_gaps()
        return self._queue[: self._length]

    def oldest(self) -> int:
        """Return the slot of the row that waits longest and is not held back, -1 if there is none."""
        stretch = 16  # of the queue, looked at together: longer each time, for gaps are mostly short or very long
        while self._first < self._length:
            waits = self._waiting[self._queue[self._first : min(self._first + stretch, self._length)]]
            place = int(waits.argmax())
            if waits[place]:
                self._first += place
                break
            self._first += len(waits)
            stretch *= 4
        if self._first == self._length:
            return -1
        if not self.held[self._queue[self._first]]:
            return int(self._queue[self._first])
        waiting = self.waiting()
        place = int(np.argmin(self.held[waiting]))
        return -1 if self.held[waiting[place]] else int(waiting[place])

    def rows(self, slots: Ints) -> Batch:
        """Return the rows in these slots, with what is published of them."""
        return replace(self.columns.take(slots), values=self._values[slots])

    @property
    def everything(self) -> Batch:
        """The columns together with what is published: a view for the gate, one place per slot."""
        return replace(self.columns, values=self._values)

    def find(self, ref: Ints) -> Ints:
        """Return the slots of the waiting rows with these refs."""
        wanted = set(map(tuple, ref.tolist()))
        slots = self.waiting()
        found = [tuple(pair) in wanted for pair in self.columns.ref[slots].tolist()]
        return slots[np.array(found, dtype=np.bool_)] if len(slots) else _NONE

    def _close_gaps(self) -> None:
        if self._gaps:
            queue = self._queue[: self._length]
            kept = queue[self._waiting[queue]]
            self._length = len(kept)
            self._queue[: self._length] = kept
            self._first = 0
            self._gaps = False

    def _ensure(self, like: Batch, n: int) -> None:
        """Make room for n more rows: twice as many, or of many a quarter more; the first ones are shaped like these.

        One column after the other, so that no more than one is there twice.
        """
        if len(self._free) >= n:
            return
        size = self.capacity
        grown = max(_FIRST_SIZE, size + (size if size < _MANY else size // 4), size + n)
        if not size:
            self.columns, self._values = like.facts, like.values
        for name in Batch.__struct_fields__:
            self.columns = replace(self.columns, **{name: _larger(getattr(self.columns, name), grown, size)})
        self._values = _larger(self._values, grown, size)
        self.held = _larger(self.held, grown, size)
        self._waiting = _larger(self._waiting, grown, size)
        self._free = np.concatenate([np.arange(grown - 1, size - 1, -1), self._free])


def _larger(column: npt.NDArray[Any], size: int, used: int) -> npt.NDArray[Any]:
    result = np.zeros((size, *column.shape[1:]), dtype=column.dtype, order="F")  # kernels go column by column
    result[:used] = column[:used]
    return result


def _no_columns() -> Batch:
    flat, wide = np.empty(0, dtype=np.int64), np.empty((0, 0), dtype=np.int64)
    values = np.empty((0, 0), dtype=object)
    return Batch(wide, wide, wide, wide, flat, np.empty(0), np.empty((0, 2), dtype=np.int64), flat, values)
