"""The buffer against a plain model of it: a list of rows, each staged, waiting or chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stream_anon.core.batch import UNNUMBERED, Batch
from stream_anon.stream.buffer import Buffer

LIMIT = 5000


def batch_of(offsets: list[int], serials: list[int] | None = None) -> Batch:
    """Rows that can be told apart in every column."""
    column = np.array(offsets, dtype=np.int64)
    wide = np.stack([column, column + 1], axis=1) if offsets else np.empty((0, 2), dtype=np.int64)
    values = np.empty((len(offsets), 1), dtype=object)
    values[:, 0] = [f"row {offset}" for offset in offsets]
    return Batch(
        qi=wide,
        sensitive=wide[:, :1] * 3,
        guard=wide[:, :1] * 5,
        psf=wide[:, :1] % 3 - 1,
        subject=column * 7,
        arrived=column / 2,
        ref=np.stack([column % 3, column], axis=1),
        serial=np.array(serials if serials is not None else [UNNUMBERED] * len(offsets), dtype=np.int64),
        values=values,
    )


@dataclass
class Place:
    """A row in the model."""

    offset: int
    serial: int
    slot: int
    state: str = "staged"
    held: bool = False


class BufferMachine(RuleBasedStateMachine):
    """Every row ever staged that has not left; one that left may come back with its number."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = Buffer(LIMIT)
        self.rows: list[Place] = []
        self.away: list[tuple[int, int]] = []
        self.next_offset = 0
        self.next_serial = 0
        self.latest = -1

    def of(self, state: str) -> list[Place]:
        return [row for row in self.rows if row.state == state]

    def slots(self, rows: list[Place]) -> np.ndarray:
        return np.array([row.slot for row in rows], dtype=np.int64)

    def some(self, data: st.DataObject, state: str) -> list[Place]:
        rows = self.of(state)
        chosen = data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1, max_size=8))
        return [rows[i] for i in chosen]

    @rule(count=st.integers(1, 9) | st.sampled_from([700, 1300]))
    def stage(self, count: int) -> None:
        count = min(count, self.buffer.room())
        if not count:
            return
        offsets = list(range(self.next_offset, self.next_offset + count))
        slots = self.buffer.stage(batch_of(offsets)).tolist()
        self.rows += [Place(o, self.next_serial + i, slots[i]) for i, o in enumerate(offsets)]
        self.next_offset += count
        self.next_serial += count

    @precondition(lambda self: self.away and self.buffer.room() > 2)
    @rule(data=st.data(), fresh=st.booleans())
    def stage_rows_that_were_away(self, data: st.DataObject, fresh: bool) -> None:
        """In any order, and with a new row among them."""
        count = data.draw(st.integers(1, min(len(self.away), self.buffer.room() - 1)))
        back = data.draw(st.permutations(self.away[:count]))
        self.away = self.away[count:]
        offsets, serials = [o for o, _ in back], [s for _, s in back]
        if fresh:
            offsets.append(self.next_offset)
            serials.append(UNNUMBERED)
        slots = self.buffer.stage(batch_of(offsets, serials)).tolist()
        if fresh:
            serials[-1] = self.next_serial
            self.next_offset += 1
            self.next_serial += 1
        self.rows += [Place(*row) for row in zip(offsets, serials, slots, strict=True)]

    @precondition(lambda self: self.of("staged"))
    @rule(data=st.data())
    def admit(self, data: st.DataObject) -> None:
        """The first of the staged rows, as an engine does."""
        staged = self.of("staged")
        rows = staged[: data.draw(st.integers(1, len(staged)))]
        self.buffer.admit(self.slots(rows))
        for row in rows:
            row.state = "waiting"
        self.latest = max(self.latest, *(row.serial for row in rows))

    @precondition(lambda self: self.of("waiting"))
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        rows = self.some(data, "waiting")
        self.buffer.withdraw(self.slots(rows))
        for row in rows:
            row.state, row.held = "chosen", False

    @precondition(lambda self: len(self.of("waiting")) > 3)
    @rule()
    def withdraw_most(self) -> None:
        rows = self.of("waiting")[1:]
        self.buffer.withdraw(self.slots(rows))
        for row in rows:
            row.state, row.held = "chosen", False

    @precondition(lambda self: self.of("chosen"))
    @rule(returns=st.booleans())
    def free(self, returns: bool) -> None:
        rows = self.of("chosen")
        self.buffer.free(self.slots(rows))
        self.rows = [row for row in self.rows if row.state != "chosen"]
        self.away += [(row.offset, row.serial) for row in rows[:5]] if returns else []

    @precondition(lambda self: self.of("waiting"))
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        for row in self.some(data, "waiting"):
            self.buffer.held[row.slot] = True
            row.held = True

    @rule(data=st.data())
    def find(self, data: st.DataObject) -> None:
        """Only waiting rows are found, in their order; what is not inside is ignored."""
        offsets = data.draw(st.sets(st.integers(0, self.next_offset + 2), max_size=10))
        refs = np.array([[o % 3, o] for o in offsets] + [[7, o] for o in offsets], dtype=np.int64).reshape(-1, 2)
        found = self.buffer.rows(self.buffer.find(refs))
        waiting = sorted(self.of("waiting"), key=lambda row: row.serial)
        assert found.ref[:, 1].tolist() == [row.offset for row in waiting if row.offset in offsets]

    @invariant()
    def order_and_oldest(self) -> None:
        waiting = sorted(self.of("waiting"), key=lambda row: row.serial)
        assert self.buffer.waiting().tolist() == [row.slot for row in waiting]
        assert self.buffer.oldest() == next((row.slot for row in waiting if not row.held), -1)
        assert len(self.buffer) == len(waiting)
        assert self.buffer.latest == self.latest

    @invariant()
    def slots_are_nobody_elses(self) -> None:
        slots = [row.slot for row in self.rows]
        assert len(set(slots)) == len(slots)
        assert all(0 <= slot < self.buffer.capacity for slot in slots)
        assert self.buffer.room() == LIMIT - len(self.rows)
        assert self.buffer.capacity <= max(1024, 2 * LIMIT)

    @invariant()
    def rows_are_what_they_were(self) -> None:
        rows = self.rows[:5] + self.rows[-5:]
        if not rows:
            return
        kept = self.buffer.rows(self.slots(rows))
        expected = batch_of([row.offset for row in rows], [row.serial for row in rows])
        for name in ("qi", "sensitive", "guard", "psf", "subject", "arrived", "ref", "serial", "values"):
            assert getattr(kept, name).tolist() == getattr(expected, name).tolist(), name

    @invariant()
    def nothing_is_remembered_of_rows_that_left(self) -> None:
        kept = sum(isinstance(value, str) for value in self.buffer.everything.values[:, :1].ravel().tolist())
        assert kept == len(self.rows)


TestBuffer = BufferMachine.TestCase
TestBuffer.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_slots_are_used_again() -> None:
    buffer = Buffer(100)
    used = set()
    for start in range(0, 10_000, 50):
        slots = buffer.stage(batch_of(list(range(start, start + 50))))
        buffer.admit(slots)
        used |= set(slots.tolist())
        buffer.withdraw(slots)
        buffer.free(slots)
    assert len(used) <= 100
    assert buffer.capacity == 1024


@pytest.mark.parametrize("serials", [[5, 3, 4], [0, 2, 1], [9, 8, 7]], ids=str)
def test_rows_numbered_elsewhere_wait_in_the_order_of_their_numbers(serials: list[int]) -> None:
    """As when the rows of one engine are handed to another that has seen nothing yet."""
    buffer = Buffer(100)
    buffer.admit(buffer.stage(batch_of([0, 1, 2], serials)))
    assert buffer.rows(buffer.waiting()).serial.tolist() == sorted(serials)
    buffer.admit(buffer.stage(batch_of([3])))
    assert buffer.rows(buffer.waiting()).serial.tolist() == [*sorted(serials), max(serials) + 1]


def test_new_rows_are_younger_than_the_numbered_ones_they_come_with() -> None:
    buffer = Buffer(100)
    buffer.admit(buffer.stage(batch_of([0, 1, 2], [UNNUMBERED, 40, UNNUMBERED])))
    assert buffer.rows(buffer.waiting()).ref[:, 1].tolist() == [1, 0, 2]


def test_a_row_that_is_withdrawn_is_held_no_longer() -> None:
    buffer = Buffer(100)
    slots = buffer.stage(batch_of([0, 1]))
    buffer.admit(slots)
    buffer.held[slots] = True
    assert buffer.oldest() == -1
    buffer.withdraw(slots[:1])
    buffer.free(slots[:1])
    again = buffer.stage(batch_of([2]))
    assert again.tolist() == slots[:1].tolist()
    buffer.admit(again)
    assert buffer.oldest() == again[0]


def test_a_large_buffer_grows_by_a_quarter() -> None:
    """Twice as many slots would cost more than what many rows publish."""
    buffer = Buffer(1_000_000)
    first = buffer.stage(batch_of(list(range(65_536))))
    assert buffer.capacity == 65_536
    buffer.stage(batch_of([65_536]))
    assert buffer.capacity == 65_536 + 65_536 // 4
    assert buffer.rows(first).ref[:, 1].tolist() == list(range(65_536))
    assert len(buffer.held) == len(buffer.columns.qi) == buffer.capacity
