"""The contract of a stream engine, checked while it runs: whatever it is given, after every call.

A `Run` drives an engine beside a plain account of which rows are inside and since when. After every call it checks the
whole contract; a test only has to decide what to call. Each rule that does not hold is named in the error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import StreamSettings
from stream_anon.stream import Outcome, StreamEngine
from stream_anon.testing.contract.definitions import PATHS, Row, satisfied
from stream_anon.testing.contract.policies import GROWING, POLICIES
from stream_anon.testing.contract.rule import rule

MANY = 64
"""Rows from which on an engine may wait a little before it searches again, where more rows can break a group."""


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

    def __post_init__(self) -> None:
        self._encoder = Encoder(self.schema)

    @property
    def stream(self) -> StreamSettings:
        """The bound, and what happens at its edge."""
        return self.schema.policy.stream

    @property
    def seen(self) -> list[Row]:
        """Every row that was handed over, in order."""
        return [account.row for account in self.accounts.values()]

    def encode(self, rows: Sequence[Row], now: float) -> Batch:
        """Return rows as the engine takes them, numbered from where the last ones ended."""
        start = len(self.accounts)
        ref = np.array([[offset % 3, offset] for offset in range(start, start + len(rows))], dtype=np.int64)
        payloads = [json.dumps(row).encode() for row in rows]
        encoded = self._encoder.encode(payloads, ref, np.full(len(rows), now))
        rule("rows-can-be-read", not encoded.rejections, "the rows of the check were rejected")
        return encoded.batch

    def push(self, rows: Sequence[Row], now: float | None = None) -> int:
        """Push new rows; return how many the engine did not take."""
        now = self._advance(now)
        batch = self.encode(rows, now)
        outcome = self.engine.push(batch, now)
        rule("takes-what-it-can", 0 <= outcome.rest <= len(rows), f"{outcome.rest} of {len(rows)} rows were not taken")
        for row in rows[: len(rows) - outcome.rest]:
            number = len(self.accounts)
            self.accounts[number] = self.inside[number] = Account(row, number, now)
        self._release_chosen(outcome, one_event=len(rows) == 1)
        return outcome.rest

    def hand_back(self, batch: Batch, now: float | None = None) -> int:
        """Push rows that were inside before; return how many the engine did not take."""
        now = self._advance(now)
        refs = batch.ref[:, 1].tolist()
        outcome = self.engine.push(batch, now)
        for number in refs[: len(refs) - outcome.rest]:
            rule("each-row-once", number not in self.inside, "a row is inside twice")
            self.inside[number] = self.accounts[number]
            self.returned.add(number)
        self._release_chosen(outcome, one_event=len(refs) == 1)
        return outcome.rest

    def tick(self, now: float | None = None) -> None:
        """Let time pass without arrivals."""
        now = self._advance(now)
        self._release_chosen(self.engine.tick(now), one_event=True)

    def flush(self) -> None:
        """End the input: everything leaves, and nothing is left for a second end."""
        self.ended = True
        self._release_chosen(self.engine.flush(), one_event=True)
        rule("all-leave-at-the-end", not self.inside, f"{len(self.inside)} rows are still inside")
        rule("deadline-told", self.engine.next_deadline() is None, "there is a deadline, and nothing is inside")
        again = self.engine.flush()
        nothing = not again.groups and again.suppressed is None
        rule("each-row-once", nothing, "something left after the end")

    def remove(self, numbers: Iterable[int]) -> Batch:
        """Take rows out by their numbers."""
        wanted = set(numbers)
        refs = np.array([[number % 3, number] for number in wanted], dtype=np.int64).reshape(-1, 2)
        batch = self.engine.remove(refs)
        taken = batch.ref[:, 1].tolist()
        rule("hands-back-what-is-asked", sorted(taken) == sorted(wanted & set(self.inside)), "other rows came back")
        when, order = [self.inside[n].arrived for n in taken], [self.inside[n].number for n in taken]
        same = (batch.arrived.tolist(), batch.serial.tolist()) == (when, order)
        rule("hands-back-what-is-asked", same, "rows came back with another time or number")
        for number in taken:
            del self.inside[number]
        self._check_count()
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
            rule("each-row-once", number in self.inside, "a row was given up that was not inside")
            del self.inside[number]
        self.groups += outcome.groups
        self.suppressed += lost
        self._check_count()
        if not self.ended:
            early = [number for number in lost if not self.is_due(self.accounts[number])]
            rule("waits-as-long-as-it-may", not early, "a row was given up before its time: company might have come")
        if lost and one_event:
            self._check_suppression(lost, outcome.groups)
        if self.stream.on_deadline == "suppress":
            overdue = [account for account in self.inside.values() if self.is_due(account)]
            rule("in-time", not overdue, "a row that is due is still inside")
        self._check_next_deadline()

    def _check_group(self, group: Group) -> None:
        refs = group.rows.ref[:, 1].tolist()
        for number in refs:
            rule("each-row-once", number in self.inside, "a row left twice, or was never there")
        members = [self.inside.pop(number) for number in refs]
        rows = [member.row for member in members]
        shown = list(group.records())
        numbered = [record["_anon"]["row"] for record in shown] == list(range(len(rows)))
        rule("true-records", numbered, "the records of a group are not numbered 0, 1, 2, ...")
        safe = satisfied(POLICIES[self.policy], rows, shown, self.seen)
        rule("safe-groups", safe, f"a group of {len(rows)} breaks the policy: {self.policy}")
        for row, record in zip(rows, shown, strict=True):
            for column in self.schema.quasi:
                covered = column.hierarchy.contains(record[column.name], row[column.name])
                rule("true-records", covered, f"a label of {column.name} does not cover the value")
            rule("true-records", record["illness"] in PATHS[row["illness"]], "a sensitive value became another")
            same = (record["pay"], record["ward"]) == (row["pay"], row["ward"])
            rule("true-records", same, "what is published as it is was changed")
        if not any("guarding_node" in model.values() for model in POLICIES[self.policy]):
            kept = [record["illness"] for record in shown] == [row["illness"] for row in rows]
            rule("true-records", kept, "a sensitive value was raised, and no model asked for it")
        rule("in-time", all(member.arrived <= self.now for member in members), "a row left before it came")
        if self.stream.on_deadline == "suppress" and self.stream.max_delay.records is not None:
            numbers = [member.number for member in members if member.number not in self.returned]
            span = max(numbers, default=0) - min(numbers, default=0)
            rule("in-time", span <= self.stream.max_delay.records, "a row left with one that came too late for it")

    def _check_suppression(self, lost: list[int], groups: list[Group]) -> None:
        """Check that a row goes only when the rows waiting with it could not have made a group."""
        rows = [self.accounts[number].row for number in lost] + [account.row for account in self.inside.values()]
        if self.policy not in GROWING and (groups or len(rows) >= MANY):
            return  # who was there cannot be told from outside; and of many rows, not every one leads to another search
        possible = satisfied(POLICIES[self.policy], rows, rows, self.seen)
        rule("nothing-given-up-needlessly", not possible, "a row was given up that could be placed")

    def _check_next_deadline(self) -> None:
        deadline, bound = self.engine.next_deadline(), self.stream.max_delay.time
        if bound is None or not self.inside:
            rule("deadline-told", deadline is None, "there is a deadline, and nothing waits for the clock")
        elif self.stream.on_deadline == "suppress":
            latest = min(account.arrived for account in self.inside.values()) + bound
            told = deadline is not None and deadline <= latest
            rule("deadline-told", told, "the next deadline is later than that of the oldest row")

    def _check_count(self) -> None:
        counted = len(self.engine) == len(self.inside)
        rule("count-told", counted, f"the engine says {len(self.engine)}, and {len(self.inside)} rows are inside")

    def is_due(self, account: Account) -> bool:
        """Tell whether a row has waited as long as it may."""
        bound = self.stream.max_delay
        by_time = bound.time is not None and self.now >= account.arrived + bound.time
        by_count = bound.records is not None and len(self.accounts) - 1 - account.number >= bound.records
        return by_time or by_count

    def told(self) -> list[tuple[str, tuple[Any, ...], str]]:
        """Return what was published, in an order of its own."""
        return sorted((group.id, group.labels, str(group.reason)) for group in self.groups)


def deliver(run: Run, rows: Sequence[Row], sizes: Callable[[], int], gap: Callable[[], int]) -> None:
    """Push rows in batches of the given sizes, the clock moving on in between."""
    place = 0
    while place < len(rows):
        size = max(1, sizes())
        rest = run.push(rows[place : place + size], run.now + gap())
        rule("takes-what-it-can", rest == 0, f"{rest} rows were not taken, and there is room")
        place += size
