"""General checks that every stream algorithm must pass: a run that watches what an engine does.

A `Run` drives an engine beside a plain account of which rows are inside and since when. After every call it checks the
whole contract; a test only has to decide what to call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cases import GROWING, POLICIES, schema_of
from definitions import PATHS, Row, satisfied

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import StreamSettings
from stream_anon.stream import Outcome, StreamEngine, build


@dataclass
class Account:
    """What is known of a row that was handed to an engine."""

    row: Row
    number: int
    arrived: float


@dataclass
class Run:
    """An engine, and the account of what it was given and what it let go.

    `number` of a row is how many rows arrived before it: the count bound is judged by it and not by the engine's own.
    """

    policy: str
    engine: StreamEngine
    schema: Schema
    now: float = 0.0
    inside: dict[int, Account] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    suppressed: list[int] = field(default_factory=list)
    accounts: dict[int, Account] = field(default_factory=dict)
    returned: set[int] = field(default_factory=set)
    """Rows handed back: their deadline may have passed while they were away."""

    ended: bool = False
    """Once the input is at its end, everything is due."""

    @classmethod
    def of(
        cls,
        policy: str,
        algorithm: str,
        stream: StreamSettings,
        settings: Row | None = None,
    ) -> Run:
        """A new engine that has seen nothing."""
        schema = schema_of(policy, algorithm, stream, settings)
        return cls(policy, build(schema), schema)

    @property
    def stream(self) -> StreamSettings:
        return self.schema.policy.stream

    @property
    def seen(self) -> list[Row]:
        return [account.row for account in self.accounts.values()]

    def encode(self, rows: Sequence[Row], now: float) -> Batch:
        start = len(self.accounts)
        ref = np.array([[offset % 3, offset] for offset in range(start, start + len(rows))], dtype=np.int64)
        payloads = [json.dumps(row).encode() for row in rows]
        encoded = Encoder(self.schema).encode(payloads, ref, np.full(len(rows), now))
        assert not encoded.rejections
        return encoded.batch

    def push(self, rows: Sequence[Row], now: float | None = None) -> int:
        """Push new rows; how many the engine did not take."""
        now = self._advance(now)
        batch = self.encode(rows, now)
        outcome = self.engine.push(batch, now)
        assert 0 <= outcome.rest <= len(rows)
        for row in rows[: len(rows) - outcome.rest]:
            number = len(self.accounts)
            self.accounts[number] = self.inside[number] = Account(row, number, now)
        self._release_chosen(outcome, one_event=len(rows) == 1)
        return outcome.rest

    def hand_back(self, batch: Batch, now: float | None = None) -> int:
        """Push rows that were inside before; how many the engine did not take."""
        now = self._advance(now)
        refs = batch.ref[:, 1].tolist()
        outcome = self.engine.push(batch, now)
        for number in refs[: len(refs) - outcome.rest]:
            assert number not in self.inside
            self.inside[number] = self.accounts[number]
            self.returned.add(number)
        self._release_chosen(outcome, one_event=len(refs) == 1)
        return outcome.rest

    def tick(self, now: float | None = None) -> None:
        now = self._advance(now)
        self._release_chosen(self.engine.tick(now), one_event=True)

    def flush(self) -> None:
        self.ended = True
        self._release_chosen(self.engine.flush(), one_event=True)
        assert not self.inside
        assert self.engine.next_deadline() is None
        again = self.engine.flush()
        assert not again.groups
        assert again.suppressed is None

    def remove(self, numbers: Iterable[int]) -> Batch:
        """Take rows out by their refs."""
        wanted = set(numbers)
        refs = np.array([[number % 3, number] for number in wanted], dtype=np.int64).reshape(-1, 2)
        batch = self.engine.remove(refs)
        taken = batch.ref[:, 1].tolist()
        assert sorted(taken) == sorted(wanted & set(self.inside))
        assert batch.arrived.tolist() == [self.inside[number].arrived for number in taken]
        assert batch.serial.tolist() == [self.inside[number].number for number in taken]
        for number in taken:
            del self.inside[number]
        assert len(self.engine) == len(self.inside)
        return batch

    def _advance(self, now: float | None) -> float:
        self.now = self.now if now is None else now
        return self.now

    def _release_chosen(self, outcome: Outcome, one_event: bool) -> None:
        """Check everything the contract says about one call."""
        lost = [] if outcome.suppressed is None else outcome.suppressed.ref[:, 1].tolist()
        for group in outcome.groups:
            self._check_group(group)
        for number in lost:
            assert self.inside.pop(number), "a row left that was not inside"
        self.groups += outcome.groups
        self.suppressed += lost
        assert len(self.engine) == len(self.inside)
        if not self.ended:
            early = [number for number in lost if not self.is_due(self.accounts[number])]
            assert not early, "a row was given up before its time: company might have come"
        if lost and one_event:
            self._check_suppression(lost, outcome.groups)
        if self.stream.on_deadline == "suppress":
            overdue = [account for account in self.inside.values() if self.is_due(account)]
            assert not overdue, "a row that is due is still inside"
        self._check_next_deadline()

    def _check_group(self, group: Group) -> None:
        refs = group.rows.ref[:, 1].tolist()
        for number in refs:
            assert number in self.inside, "a row left twice, or was never there"
        members = [self.inside.pop(number) for number in refs]
        rows = [member.row for member in members]
        shown = list(group.records())
        assert [record["_anon"]["row"] for record in shown] == list(range(len(rows)))
        assert satisfied(POLICIES[self.policy], rows, shown, self.seen), f"a group breaks the policy: {self.policy}"
        for row, record in zip(rows, shown, strict=True):
            for column in self.schema.quasi:
                assert column.hierarchy.contains(record[column.name], row[column.name])
            assert record["illness"] in PATHS[row["illness"]]
            assert (record["pay"], record["ward"]) == (row["pay"], row["ward"])
        if not any("guarding_node" in model.values() for model in POLICIES[self.policy]):
            assert [record["illness"] for record in shown] == [row["illness"] for row in rows]
        assert all(member.arrived <= self.now for member in members)
        if self.stream.on_deadline == "suppress" and self.stream.max_delay.records is not None:
            numbers = [member.number for member in members if member.number not in self.returned]
            assert max(numbers, default=0) - min(numbers, default=0) <= self.stream.max_delay.records

    def _check_suppression(self, lost: list[int], groups: list[Group]) -> None:
        """A row goes only when the rows waiting with it could not have made a group."""
        if groups and self.policy not in GROWING:
            return  # who was there when the row was given up cannot be told from outside
        rows = [self.accounts[number].row for number in lost] + [account.row for account in self.inside.values()]
        assert not satisfied(POLICIES[self.policy], rows, rows, self.seen), "a row was given up that could be placed"

    def _check_next_deadline(self) -> None:
        deadline, bound = self.engine.next_deadline(), self.stream.max_delay.time
        if bound is None or not self.inside:
            assert deadline is None
        elif self.stream.on_deadline == "suppress":
            assert deadline is not None
            assert deadline <= min(account.arrived for account in self.inside.values()) + bound

    def is_due(self, account: Account) -> bool:
        """Whether a row has waited as long as it may."""
        bound = self.stream.max_delay
        by_time = bound.time is not None and self.now >= account.arrived + bound.time
        by_count = bound.records is not None and len(self.accounts) - 1 - account.number >= bound.records
        return by_time or by_count

    def told(self) -> list[tuple[str, tuple[Any, ...], str]]:
        """What was published, in an order of its own."""
        return sorted((group.id, group.labels, str(group.reason)) for group in self.groups)


def deliver(run: Run, rows: Sequence[Row], sizes: Callable[[], int], gap: Callable[[], int]) -> None:
    """Push rows in batches of the given sizes, the clock moving on in between."""
    place = 0
    while place < len(rows):
        size = max(1, sizes())
        assert run.push(rows[place : place + size], run.now + gap()) == 0
        place += size
