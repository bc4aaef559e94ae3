"""General checks that every stream algorithm must pass: makers of streams, and a run that watches what an engine does.

A `Run` drives an engine beside a plain account of which rows are inside and since when. After every call it checks the
whole contract; a test only has to decide what to call.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
from definitions import ILLNESSES, LEAVES, PATHS, Row, satisfied
from hypothesis import strategies as st

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.group import Group
from stream_anon.core.schema import Schema
from stream_anon.policy import load
from stream_anon.policy.settings import AlgorithmSettings, MaxDelay, StreamSettings
from stream_anon.stream import Anonymizer, Outcome, build

# --- what is checked: algorithms x policies ---------------------------------------------------------------------------

ALGORITHMS: dict[str, Any] = {
    get_args(settings.model_fields["name"].annotation)[0]: settings
    for settings in get_args(get_args(AlgorithmSettings)[0])
}
"""Every algorithm a policy can name: a new one is checked without being listed here."""

VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    # remark, algorithm, its settings
    ("never impatient", "cail", {"patience": 0.9}),
    ("a threshold nothing exceeds", "cail", {"threshold": 9.0}),
    ("a threshold only equal rows keep", "cail", {"threshold": 0.0}),
    ("hardness does not matter", "cail", {"opportunity": 0.0}),
    ("hardness matters more than loss", "cail", {"opportunity": 50.0, "memory": 1}),
    ("standing clusters", "cail", {"clusters": "standing"}),
    ("standing, a fixed threshold", "cail", {"clusters": "standing", "threshold": 0.4}),
    ("standing, everything joins", "cail", {"clusters": "standing", "threshold": 9.0}),
    ("standing, merging", "cail", {"clusters": "standing", "completion": "merge", "memory": 2}),
    ("standing, merging within a threshold", "cail", {"clusters": "standing", "completion": "merge", "threshold": 0.3}),
    ("standing, one cluster", "cail", {"clusters": "standing", "max_clusters": 1, "completion": "merge"}),
    ("standing, two clusters", "cail", {"clusters": "standing", "max_clusters": 2}),
    ("one cluster", "castle", {"max_clusters": 1}),
    ("three clusters, short memory", "castle", {"max_clusters": 3, "memory": 1}),
]

K2, K3 = {"model": "k_anonymity", "k": 2}, {"model": "k_anonymity", "k": 3}


def _of(model: str, attribute: str = "illness", **settings: Any) -> Row:
    return {"model": model, "attribute": attribute, **settings}


EVEN = dict.fromkeys(LEAVES, 1)
POLICIES: dict[str, list[Row]] = {
    # remark: the models
    "k": [K3],
    "k and distinct l": [K3, _of("l_diversity", l=3)],
    "distinct l above k": [K2, _of("l_diversity", l=3)],
    "entropy l": [K2, _of("l_diversity", l=2, variant="entropy")],
    "recursive l": [K2, _of("l_diversity", l=2, variant="recursive", c=2)],
    "l and c": [K2, _of("lc_anonymity", l=2, c=0.5)],
    "l of its own for some values": [K2, _of("lc_anonymity", l=2, c=0.7, values={"ulcer": {"l": 4}, "flu": {"l": 3}})],
    "one alpha": [_of("alpha_k", k=3, alpha=0.5)],
    "alpha per value": [_of("alpha_k", k=2, alpha={"ulcer": 0.25, "flu": 0.34}, default=0.8)],
    "alpha from wishes": [_of("alpha_k", k=2, estimate={"after": 6}, floor=0.5)],
    "t, equal distance": [K2, _of("t_closeness", t=0.6, reference=EVEN)],
    "t, ordered distance": [K2, _of("t_closeness", t=0.25, distance="ordered", reference=EVEN | {"burn": 3})],
    "t, estimated": [K2, _of("t_closeness", t=0.6, estimate={"after": 8})],
    "t, ordered and estimated": [K3, _of("t_closeness", t=0.3, distance="ordered", estimate={"after": 5})],
    "guarding nodes": [K2, _of("guarding_node", p=0.5)],
    "guarding nodes and l on one attribute": [K2, _of("guarding_node", p=0.5), _of("l_diversity", l=2)],
    "guarding nodes and t on one attribute": [
        K2,
        _of("guarding_node", p=0.6),
        _of("t_closeness", t=0.7, reference=EVEN),
    ],
    "several sensitive attributes": [K2, _of("l_diversity", l=3), _of("l_diversity", "pay", l=2)],
    "different models on different attributes": [
        K3,
        _of("lc_anonymity", l=2, c=0.6),
        _of("l_diversity", "pay", l=2, variant="entropy"),
        _of("guarding_node", p=0.7),
    ],
}
LEARNING = [name for name, models in POLICIES.items() if any("estimate" in model for model in models)]
"""Policies whose verdict depends on what the stream has brought."""

GROWING = ["k", "k and distinct l", "distinct l above k", "several sensitive attributes"]
"""Policies that more rows never break: if some rows satisfy them, so does every larger set."""

ATTRIBUTES: Row = {
    "person": {"role": "identifier"},
    "age": {"role": "quasi_identifier", "type": "integer", "hierarchy": {"kind": "interval", "range": [0, 99]}},
    "since": {
        "role": "quasi_identifier",
        "type": "integer",
        "weight": 0.5,
        "missing": "leaf",
        "hierarchy": {"kind": "interval", "range": [1990, 2029], "snap": [5, 10]},
    },
    "job": {
        "role": "quasi_identifier",
        "type": "category",
        "weight": 2,
        "hierarchy": {
            "kind": "tree",
            "tree": {"all": {"hand": ["mason", "smith"], "head": ["clerk", "judge", "poet"]}},
        },
    },
    "sex": {
        "role": "quasi_identifier",
        "type": "category",
        "missing": "leaf",
        "unknown": "leaf",
        "hierarchy": {"kind": "flat", "values": ["f", "m"]},
    },
    "zip": {
        "role": "quasi_identifier",
        "type": "category",
        "unknown": "leaf",
        "hierarchy": {"kind": "prefix", "length": 3},
    },
    "day": {
        "role": "quasi_identifier",
        "type": "timestamp",
        "missing": "leaf",
        "hierarchy": {"kind": "calendar", "levels": ["day", "week", "month", "year"]},
    },
    "illness": {
        "role": "sensitive",
        "guarding_node": "guard",
        "psf": "wish",
        "hierarchy": {"kind": "tree", "tree": ILLNESSES},
    },
    "pay": {"role": "sensitive"},
    "ward": {"role": "insensitive"},
}


@cache
def _compiled(policy: str) -> Schema:
    text = {
        "version": 1,
        "name": "contract",
        "subject": "person",
        "secret": "a secret for the tests",
        "attributes": ATTRIBUTES,
        "privacy": POLICIES[policy],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.yaml"
        path.write_text(json.dumps(text), encoding="utf-8")  # YAML 1.2 contains JSON
        return Schema.compile(load(path, {}))


def schema_of(policy: str, algorithm: str, stream: StreamSettings, settings: Row | None = None) -> Schema:
    """A schema that has learned nothing yet, for any algorithm and bound."""
    schema = _compiled(policy)
    chosen = ALGORITHMS[algorithm](name=algorithm, **(settings or {}))
    return replace(
        schema,
        policy=schema.policy.model_copy(update={"stream": stream, "algorithm": chosen}),
        requirements=copy.deepcopy(schema.requirements),
    )


# --- streams ----------------------------------------------------------------------------------------------------------

ROOT = next(iter(ILLNESSES))
JOBS = ["mason", "smith", "clerk", "judge", "poet"]
WAGES = ["low", "fair", "high"]


def row_of(number: int) -> Row:
    """A row for a number: similar numbers give similar rows, and people repeat."""

    def pick(options: Sequence[Any]) -> Any:
        nonlocal number
        number, choice = divmod(number, len(options))
        return options[choice]

    illness = pick(LEAVES)
    return {
        "person": pick(range(7)),
        "illness": illness,
        "pay": pick(WAGES),
        "age": pick(range(0, 100, 9)),
        "since": pick([1990, 2004, 2005, 2017, 2029, None]),
        "job": pick(JOBS),
        "sex": pick(["f", "m", "m", "other", None]),
        "zip": pick(["021", "022", "100", "999", "9999"]),
        "day": pick(["2026-03-01", str(date(2026, 3, 1) + timedelta(pick(range(400)))), None]),
        "guard": pick([None, None, *(node for node in PATHS[illness] if node != ROOT)]),  # the root nobody can guard
        "wish": pick([-1, 0, 1]),
        "ward": pick("ABC"),
    }


def rows_of_length(low: int, high: int) -> st.SearchStrategy[list[Row]]:
    """Streams of so many rows."""
    return st.lists(st.integers(0, 2**48 - 1).map(row_of), min_size=low, max_size=high)


bounds = st.one_of(
    st.builds(MaxDelay, records=st.integers(1, 14)),
    st.builds(MaxDelay, time=st.integers(1, 12).map(float)),
    st.builds(MaxDelay, records=st.integers(1, 14), time=st.integers(1, 12).map(float)),
)
counts_only = st.builds(MaxDelay, records=st.integers(1, 14))


# --- the run ----------------------------------------------------------------------------------------------------------


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
    engine: Anonymizer
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
        compiled: bool | None = None,
    ) -> Run:
        """A new engine that has seen nothing."""
        schema = schema_of(policy, algorithm, stream, settings)
        return cls(policy, build(schema, compiled), schema)

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
        self._let_go(outcome, one_event=len(rows) == 1)
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
        self._let_go(outcome, one_event=len(refs) == 1)
        return outcome.rest

    def tick(self, now: float | None = None) -> None:
        now = self._advance(now)
        self._let_go(self.engine.tick(now), one_event=True)

    def flush(self) -> None:
        self.ended = True
        self._let_go(self.engine.flush(), one_event=True)
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

    def _let_go(self, outcome: Outcome, one_event: bool) -> None:
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
