"""The contract of a stream engine, checked over every algorithm and every privacy model."""

from __future__ import annotations

from itertools import cycle, pairwise
from random import Random

import pytest
from cases import (
    ALGORITHMS,
    GROWING,
    LEARNING,
    POLICIES,
    VARIANTS,
    bounds,
    counts_only,
    deadlines,
    every_algorithm,
    every_policy,
    few,
    gaps,
    row_of,
    rows_of_length,
    sizes,
)
from contract import Run, deliver
from hypothesis import given
from hypothesis import strategies as st

from stream_anon.core.gate import Reason
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.testing.checks.streams import (
    give_the_same_again,
    give_the_same_in_batches,
    leave_once,
    meet_deadlines_alone,
)
from stream_anon.testing.contract.definitions import Row, people


def test_every_algorithm_is_checked() -> None:
    assert {"cail", "castle", "fads"} <= set(ALGORITHMS)
    assert {name for _, name, _ in VARIANTS} <= set(ALGORITHMS)


@every_algorithm
@every_policy
@few(12)
@given(rows=rows_of_length(1, 45), bound=bounds, at_deadline=deadlines, sizes=sizes, gaps=gaps)
def test_rows_leave_once_in_time_and_in_safe_groups(
    algorithm: str, policy: str, rows: list[Row], bound: MaxDelay, at_deadline: str, sizes: list[int], gaps: list[int]
) -> None:
    leave_once(Run.of(policy, algorithm, StreamSettings(max_delay=bound, on_deadline=at_deadline)), rows, sizes, gaps)


@pytest.mark.parametrize(("algorithm", "changed"), [v[1:] for v in VARIANTS], ids=[f"{v[1]}: {v[0]}" for v in VARIANTS])
@few(15)
@given(
    rows=rows_of_length(1, 45), bound=bounds, at_deadline=deadlines, sizes=sizes, policy=st.sampled_from([*POLICIES])
)
def test_no_setting_of_an_algorithm_breaks_the_contract(
    algorithm: str, changed: Row, policy: str, rows: list[Row], bound: MaxDelay, at_deadline: str, sizes: list[int]
) -> None:
    stream = StreamSettings(max_delay=bound, on_deadline=at_deadline)
    leave_once(Run.of(policy, algorithm, stream, changed), rows, sizes, [1])


@every_algorithm
@few(40)
@given(rows=rows_of_length(1, 40), bound=bounds, gaps=gaps, policy=st.sampled_from(GROWING))
def test_row_by_row_nothing_is_given_up_that_could_be_placed(
    algorithm: str, policy: str, rows: list[Row], bound: MaxDelay, gaps: list[int]
) -> None:
    """The run checks it wherever a call is one event: a single arrival, a tick, the end."""
    run = Run.of(policy, algorithm, StreamSettings(max_delay=bound))
    deliver(run, rows, lambda: 1, cycle(gaps).__next__)
    run.flush()
    if (
        policy == "k"
        and people(rows) >= 3
        and bound.records is not None
        and bound.records >= len(rows)
        and not bound.time
    ):
        assert not {*run.suppressed} or people([rows[number] for number in run.suppressed]) < 3


@every_algorithm
@few(25)
@given(rows=rows_of_length(1, 45), bound=counts_only, sizes=sizes, at_deadline=deadlines, data=st.data())
def test_batches_of_any_size_give_the_same_groups(
    algorithm: str, rows: list[Row], bound: MaxDelay, sizes: list[int], at_deadline: str, data: st.DataObject
) -> None:
    """Rows arrive one by one, whatever batches bring them; only what a model learns may depend on batches."""
    policy = data.draw(st.sampled_from([name for name in POLICIES if name not in LEARNING]))
    stream = StreamSettings(max_delay=bound, on_deadline=at_deadline)
    give_the_same_in_batches(lambda: Run.of(policy, algorithm, stream), rows, ([1], sizes, [len(rows)]))


@every_algorithm
@pytest.mark.parametrize("policy", ["k", "several sensitive attributes", "l and c"])
@few(2)
@given(seed=st.integers(0, 2**32), bound=st.integers(64, 130), people=st.sampled_from([4, 30, 10_000]), sizes=sizes)
def test_a_long_wait_for_small_groups(
    algorithm: str, policy: str, seed: int, bound: int, people: int, sizes: list[int]
) -> None:
    """The bound is many times k: algorithms may take other paths here, and batches still change nothing."""
    random = Random(seed)
    rows = [row_of(random.getrandbits(48)) | {"person": random.randrange(people)} for _ in range(220)]
    stream = StreamSettings(max_delay=MaxDelay(records=bound))
    steps = [1], [10 * size for size in sizes], [len(rows)]
    give_the_same_in_batches(lambda: Run.of(policy, algorithm, stream), rows, steps)


@every_algorithm
@every_policy
@few(4)
@given(rows=rows_of_length(1, 30), bound=bounds, sizes=sizes, gaps=gaps)
def test_same_input_same_output(
    algorithm: str, policy: str, rows: list[Row], bound: MaxDelay, sizes: list[int], gaps: list[int]
) -> None:
    give_the_same_again(lambda: Run.of(policy, algorithm, StreamSettings(max_delay=bound)), rows, sizes, gaps)


@every_algorithm
@few(20)
@given(
    rows=rows_of_length(1, 30),
    time=st.integers(1, 9),
    records=st.none() | st.integers(5, 30),
    gaps=gaps,
    policy=st.sampled_from([*POLICIES]),
)
def test_an_idle_stream_meets_its_deadlines(
    algorithm: str, policy: str, rows: list[Row], time: int, records: int | None, gaps: list[int]
) -> None:
    run = Run.of(policy, algorithm, StreamSettings(max_delay=MaxDelay(time=float(time), records=records)))
    meet_deadlines_alone(run, rows, gaps, time)


@every_algorithm
@few(20)
@given(rows=rows_of_length(10, 40), records=st.integers(1, 12), time=st.integers(1, 12), gap=st.integers(0, 3))
def test_of_two_bounds_the_earlier_one_counts(
    algorithm: str, rows: list[Row], records: int, time: int, gap: int
) -> None:
    run = Run.of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=records, time=float(time))))
    gone: dict[int, tuple[float, int]] = {}
    for row in rows:
        before = set(run.inside)
        run.push([row], run.now + gap)
        gone |= dict.fromkeys(before - set(run.inside), (run.now, len(run.accounts) - 1))
    for number, (when, latest) in gone.items():
        assert latest - number <= records, "more later rows had arrived than allowed"
        # the clock is only looked at when a row arrives: at the first arrival at or after the deadline
        assert when < run.accounts[number].arrived + time + max(gap, 1)


@every_algorithm
def test_reasons_tell_why_a_group_left(algorithm: str) -> None:
    rows = [row_of(0) | {"person": person, "age": 9 * (person % 5)} for person in range(20)]
    run = Run.of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=9)))
    deliver(run, rows, lambda: 1, lambda: 1)
    assert {group.reason for group in run.groups} <= {Reason.READY, Reason.DEADLINE}
    assert run.groups
    before = len(run.groups)
    run.flush()
    assert {group.reason for group in run.groups[before:]} <= {Reason.FLUSH}


@every_algorithm
def test_the_first_batch_keeps_the_bound_however_large_it_is(algorithm: str) -> None:
    rows = [row_of(number * 7919) | {"person": number} for number in range(300)]
    run = Run.of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=20)))
    run.push(rows)
    assert len(run.groups) >= 300 // 40
    for group in run.groups:
        low, high = min(group.rows.serial.tolist()), max(group.rows.serial.tolist())
        assert high - low <= 20


@every_algorithm
def test_an_empty_batch_is_no_event(algorithm: str) -> None:
    run = Run.of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=5, time=5.0)))
    assert run.push([], 1.0) == 0
    run.push([row_of(0)], 2.0)
    assert run.push([], 3.0) == 0
    assert len(run.engine) == 1
    run.flush()


def test_numbers_follow_one_another() -> None:
    """The run counts arrivals by itself; this is what makes its count the engine's."""
    run = Run.of("k", "fads", StreamSettings(max_delay=MaxDelay(time=5.0)))
    run.push([row_of(number) for number in range(4)])
    run.push([row_of(number) for number in range(3)])
    batch = run.remove(range(7))
    assert all(later == earlier + 1 for earlier, later in pairwise(sorted(batch.serial.tolist())))
