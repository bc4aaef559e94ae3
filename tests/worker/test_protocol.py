"""The model check: the real loop on a broker in memory, in any interleaving, judged by both kinds of reader."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from fifo import fifo_core
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from puppets import Puppet

from stream_anon.kafka.transport import Committed
from stream_anon.testing.memory_log import MemoryBroker
from stream_anon.worker.ledger.ledger import Place
from stream_anon.worker.ledger.mark import Mark, MarkSeal
from stream_anon.worker.ledger.topic import LedgerTopic
from stream_anon.worker.settings import WorkerSettings
from stream_anon.worker.takeover.witness import Witness

WORKERS, PARTITIONS, K, KEEP = 3, 4, 3, 4
workers = st.integers(0, WORKERS - 1)


class Remembering(MemoryBroker):
    """A broker that can put back what was once committed."""

    def __init__(self, topic: str, **settings: Any) -> None:
        super().__init__(topic, **settings)
        self.past: dict[int, list[Committed]] = defaultdict(list)

    def end(self, transactional_id: str, state: str) -> None:
        super().end(transactional_id, state)
        for partition, committed in self.committed.items():
            if committed not in self.past[partition][-1:]:
                self.past[partition].append(committed)


class Protocol(RuleBasedStateMachine):
    """Three workers, four partitions, and whatever may happen to them."""

    announce = True
    ledger: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.broker = Remembering("in", partitions=PARTITIONS, automatic=False)
        self.rolled_back = False
        self.broker.create_topic("out", 2)
        if self.ledger is not None:
            self.broker.create_topic(self.ledger, PARTITIONS, "compact")
        self.settings = WorkerSettings("in", "out", delay=None, poll_records=5, ledger=self.ledger)
        self.now, self.pace, self.produced, self.started = 0.0, 0.01, 0, 0
        self.puppets: dict[int, Puppet] = {}
        for w in range(WORKERS):
            self._start(w)
        for p in range(PARTITIONS):
            self._produce(p, K)
        self._rebalance([p % WORKERS for p in range(PARTITIONS)])

    def clock(self) -> float:
        self.now += self.pace
        return self.now

    def _start(self, w: int) -> None:
        self.started += 1
        name = f"w{w}-{self.started}"
        core = fifo_core(K, keep=KEEP)
        slot = f"slot{self.started}"
        self.puppets[w] = Puppet(self.broker, name, slot, self.settings, self.clock, core, self.announce)
        self.broker.join(name)

    def _produce(self, partition: int, count: int) -> None:
        for _ in range(count):
            self.broker.produce("in", partition, str(self.produced).encode())
            self.produced += 1

    def _rebalance(self, owners: list[int]) -> None:
        plan: dict[str, set[int]] = defaultdict(set)
        for partition in range(self.broker.facts["in"].partitions):
            owner = self.puppets[owners[partition % len(owners)]].name
            plan[owner].add(partition)
        self.broker.rebalance({name: frozenset(p) for name, p in plan.items() if name in self.broker.assignment})

    @initialize(pace=st.sampled_from([0.002, 0.01, 0.05]))
    def choose_pace(self, pace: float) -> None:
        """How many rounds lie between two transactions."""
        self.pace = pace

    @rule(w=workers, operations=st.integers(1, 25))
    def advance(self, w: int, operations: int) -> None:
        for _ in range(operations):
            self.puppets[w].advance()

    @rule(w=workers, operation=st.sampled_from(["send_offsets", "send", "commit", "begin", "ledgers", "write", "read"]))
    def advance_until(self, w: int, operation: str) -> None:
        for _ in range(40):
            self.puppets[w].advance()
            if self.puppets[w].at == operation:
                break

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(1, 6))
    def produce(self, partition: int, count: int) -> None:
        self._produce(partition, count)

    @rule(owners=st.lists(workers, min_size=PARTITIONS + 1, max_size=PARTITIONS + 1))
    def rebalance(self, owners: list[int]) -> None:
        self._rebalance(owners)

    @rule(w=workers, other=workers, operations=st.integers(10, 60))
    def detour(self, w: int, other: int, operations: int) -> None:
        """Everything of a worker that stands still goes to another and comes back: its assignment looks the same."""
        before = dict(self.broker.assignment)
        here, there = self.puppets[w].name, self.puppets[other].name
        if here == there or here not in before or there not in before:
            return
        self.broker.rebalance({**before, here: frozenset(), there: before[there] | before[here]})
        for _ in range(operations):
            self.puppets[other].advance()
        self.broker.rebalance(before)

    @rule(w=workers)
    def crash(self, w: int) -> None:
        """A process ends and another starts; its transaction stays open until its time-out."""
        old = self.puppets[w]
        old.kill()
        self._start(w)

    @rule(w=workers, owners=st.lists(workers, min_size=PARTITIONS, max_size=PARTITIONS))
    def evict(self, w: int, owners: list[int]) -> None:
        """A worker stands still longer than the session time-out; it is not told, and may wake up any time."""
        self.broker.leave(self.puppets[w].name)
        self._rebalance(owners)

    @rule(number=st.integers(1, 30))
    def expire(self, number: int) -> None:
        self.broker.expire(f"slot{1 + number % self.started}")

    @rule(w=workers, lost=st.sampled_from(["request", "response"]))
    def lose(self, w: int, lost: str) -> None:
        self.puppets[w].transport.lose = lost

    @precondition(lambda self: self.broker.facts["in"].partitions < PARTITIONS + 2)
    @rule(owners=st.lists(workers, min_size=PARTITIONS, max_size=PARTITIONS))
    def add_partition(self, owners: list[int]) -> None:
        if self.ledger is not None:
            self.broker.add_partition(self.ledger)
        self.broker.add_partition("in")
        self._rebalance(owners)
        self._produce(self.broker.facts["in"].partitions - 1, K)

    @invariant()
    def no_row_in_two_groups_for_any_reader(self) -> None:
        groups = defaultdict(set)
        for record in self._read(committed=False):
            groups[record["v"]].add(record["_anon"]["group"])
        twice = [row for row, seen in groups.items() if len(seen) > 1]
        assert not twice, f"rows in two groups: {twice}"

    @invariant()
    def committed_groups_are_whole_and_rows_are_single(self) -> None:
        records = self._read(committed=True)
        rows = Counter(record["v"] for record in records)
        assert all(count == 1 for count in rows.values()), "a row was published twice"

    @invariant()
    def nobody_failed(self) -> None:
        for puppet in self.puppets.values():
            assert not puppet.failure, puppet.failure
            put_back = {"quarantined: rolled-back", "quarantined: unproved"} if self.rolled_back else set()
            failures = set(puppet.observer.failures) - put_back
            assert not failures, failures

    def _read(self, committed: bool) -> list[dict[str, dict[str, str]]]:
        return [json.loads(e.value or b"") for e in self.broker.read("out", committed)]

    def _end_all(self) -> None:
        for puppet in self.puppets.values():
            puppet.kill()
            self.broker.leave(puppet.name)
        for number in range(1, self.started + 1):
            self.broker.expire(f"slot{number}")

    def teardown(self) -> None:
        """Everything times out, one worker remains: it publishes every row but those too few for a group.

        Partitions whose ledgers were put back it may leave alone.
        """
        self._end_all()
        self._start(0)
        self._rebalance([0])
        last = self.puppets[0]
        try:
            for _ in range(200):
                for _ in range(20):
                    last.advance()
                self.now += 1.0
                if self.produced - len(self._read(committed=True)) < K + KEEP and not last.worker.state.unpublished:
                    break
            self.nobody_failed()
            self.no_row_in_two_groups_for_any_reader()
            self.committed_groups_are_whole_and_rows_are_single()
            sizes = Counter(record["_anon"]["group"] for record in self._read(committed=True))
            assert set(sizes.values()) <= {K}, "a group was published in part"
            if self.rolled_back:
                return
            left = self.produced - sum(sizes.values())
            assert left < K + KEEP, f"{left} rows were lost"
        finally:
            last.kill()


class WithoutAnnouncing(Protocol):
    announce = False


class Compacted(Protocol):
    """Ledgers are kept in a topic, which is compacted at any moment."""

    ledger = "ledger"

    @rule()
    def compact(self) -> None:
        self.broker.compact("ledger")


class RolledBack(Protocol):
    """While no worker runs, older ledgers of some partitions are put back."""

    @rule(
        depths=st.lists(st.integers(0, 6), min_size=PARTITIONS, max_size=PARTITIONS),
        owners=st.lists(workers, min_size=PARTITIONS, max_size=PARTITIONS),
    )
    def roll_back(self, depths: list[int], owners: list[int]) -> None:
        self._end_all()
        for partition, depth in enumerate(depths):
            past = self.broker.past[partition]
            if depth and past:
                self.broker.committed[partition] = past[max(0, len(past) - 1 - depth)]
                self.rolled_back = True
        for w in range(WORKERS):
            self._start(w)
        self._rebalance(owners)


class CompactedAndRolledBack(RolledBack, Compacted):
    """The same where the ledgers themselves are in a topic that does not go back with the offsets."""


class KeptAndRolledBack(RolledBack):
    """Without compaction, which by itself makes most of what was put back point to nothing."""

    ledger = "ledger"


SETTINGS = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def test_the_promise_holds_in_any_interleaving() -> None:
    run_state_machine_as_test(Protocol, settings=SETTINGS)


def test_the_promise_holds_with_ledgers_in_a_topic() -> None:
    run_state_machine_as_test(Compacted, settings=settings(SETTINGS, max_examples=50))


def test_no_ledger_that_was_put_back_is_believed() -> None:
    run_state_machine_as_test(RolledBack, settings=settings(SETTINGS, max_examples=50))


def test_no_pointer_that_was_put_back_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic tells by itself: neither marks nor siblings are looked at."""
    monkeypatch.setattr(Witness, "_older", lambda *_: set())
    run_state_machine_as_test(CompactedAndRolledBack, settings=settings(SETTINGS, max_examples=30))


def test_without_a_look_behind_the_pointer_the_check_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Witness, "_older", lambda *_: set())
    monkeypatch.setattr(LedgerTopic, "followed", lambda *_: set())
    quick = settings(SETTINGS, phases=[Phase.generate], max_examples=400, print_blob=False)
    with pytest.raises(BaseException, match=r"rows in two groups|published twice"):
        run_state_machine_as_test(KeptAndRolledBack, settings=quick)


def forget(*parts: str) -> Callable[[MarkSeal, bytes, Place], Mark | None]:
    """Marks of which some parts are not looked at."""
    whole = MarkSeal.open

    def read(seal: MarkSeal, data: bytes, place: Place) -> Mark | None:
        mark = whole(seal, data, place)
        return mark and mark._replace(**{part: {} for part in parts})

    return read


BLIND = [
    ("announced", "rows in two groups"),
    ("written", "a row was published twice|rows in two groups"),
]


@pytest.mark.parametrize(("rule", "found"), BLIND)
def test_without_one_of_the_looks_the_check_fails(rule: str, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the look at siblings it fails, too, within some hundred more; test_rollback.py has that case."""
    monkeypatch.setattr(MarkSeal, "open", forget(rule))
    found_soon = seed(6)(type("FoundSoon", (RolledBack,), {}))  # by others it is found, too, within a minute at most
    quick = settings(SETTINGS, phases=[Phase.generate], max_examples=400, print_blob=False)
    with pytest.raises(BaseException, match=found):
        run_state_machine_as_test(found_soon, settings=quick)


def test_without_announcing_the_check_fails() -> None:
    quick = settings(SETTINGS, phases=[Phase.generate], max_examples=300, print_blob=False)
    with pytest.raises(BaseException, match="rows in two groups"):
        run_state_machine_as_test(WithoutAnnouncing, settings=quick)
