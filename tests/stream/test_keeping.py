"""Rows in an engine's keeping: taken away, handed back, refused, held; over every algorithm."""

from __future__ import annotations

from itertools import cycle

import pytest
from cases import LEARNING, POLICIES, bounds, every_algorithm, few, row_of, rows_of_length, sizes
from contract import Run
from hypothesis import given
from hypothesis import strategies as st

from stream_anon.core.batch import Batch
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.testing.contract.definitions import Row


@every_algorithm
@few(30)
@given(rows=rows_of_length(4, 45), bound=bounds, sizes=sizes, policy=st.sampled_from([*POLICIES]), data=st.data())
def test_rows_that_are_taken_away_and_handed_back_keep_their_age(
    algorithm: str, policy: str, rows: list[Row], bound: MaxDelay, sizes: list[int], data: st.DataObject
) -> None:
    run = Run.of(policy, algorithm, StreamSettings(max_delay=bound))
    away: list[Batch] = []
    place = 0
    for size in cycle(sizes):
        if place >= len(rows):
            break
        run.push(rows[place : place + size], run.now + data.draw(st.integers(0, 2)))
        place += size
        wanted = data.draw(st.sets(st.integers(0, len(rows) + 3), max_size=6))  # some inside, some not
        away.append(run.remove(wanted))
        if data.draw(st.booleans()):
            returning = Batch.concat(away)
            order = data.draw(st.permutations(range(len(returning))))
            assert run.hand_back(returning.take(order)) == 0
            away.clear()
    run.flush()
    left = [ref for group in run.groups for ref in group.rows.ref[:, 1].tolist()] + run.suppressed
    out = [number for batch in away for number in batch.ref[:, 1].tolist()]
    assert sorted(left + out) == list(range(len(rows)))


@every_algorithm
@few(20)
@given(rows=rows_of_length(6, 40), bound=bounds, sizes=sizes, policy=st.sampled_from([*POLICIES]), data=st.data())
def test_a_released_group_can_be_dissolved(
    algorithm: str, policy: str, rows: list[Row], bound: MaxDelay, sizes: list[int], data: st.DataObject
) -> None:
    """Its rows wait again, some of them perhaps without the one that was taken away for good."""
    run = Run.of(policy, algorithm, StreamSettings(max_delay=bound))
    gone: set[int] = set()
    place = 0
    for size in cycle(sizes):
        if place >= len(rows):
            break
        run.push(rows[place : place + size], run.now + 1)
        place += size
        if run.groups and data.draw(st.booleans()):
            group = run.groups.pop(data.draw(st.integers(0, len(run.groups) - 1)))
            keep = data.draw(st.integers(0, len(group.rows)))
            gone |= set(group.rows.ref[keep:, 1].tolist())
            assert run.hand_back(group.rows.take(slice(0, keep))) == 0
    run.flush()
    left = [ref for group in run.groups for ref in group.rows.ref[:, 1].tolist()] + run.suppressed
    assert sorted([*left, *gone]) == list(range(len(rows)))


@every_algorithm
@few(20)
@given(aged=st.integers(1, 7), fresh=rows_of_length(8, 30))
def test_a_row_handed_back_in_the_midst_of_new_ones_is_not_late(algorithm: str, aged: int, fresh: list[Row]) -> None:
    """It has seen some arrivals already; it must leave before it has seen more than the bound allows."""
    bound = 8
    run = Run.of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=bound)))
    run.push([row_of(number * 8) for number in range(aged + 1)])
    oldest = run.remove([0])
    if not len(oldest):
        return
    batch = Batch.concat([oldest, run.encode(fresh, run.now)])
    outcome = run.engine.push(batch, run.now)
    for group in outcome.groups:
        numbers = group.rows.serial.tolist()
        assert max(numbers) - min(numbers) <= bound


@every_algorithm
@few(20)
@given(
    rows=rows_of_length(1, 60),
    limit=st.integers(4, 12),
    bound=st.builds(MaxDelay, time=st.integers(2, 9).map(float), records=st.none() | st.integers(2, 40)),
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    policy=st.sampled_from([name for name in POLICIES if name not in LEARNING]),  # parts of a batch are learned apart
)
def test_a_full_buffer_takes_no_more_and_loses_nothing(
    algorithm: str, policy: str, rows: list[Row], limit: int, bound: MaxDelay, sizes: list[int]
) -> None:
    run = Run.of(policy, algorithm, StreamSettings(max_delay=bound, max_buffer=limit))
    place = 0
    for size in cycle(sizes):
        if place >= len(rows):
            break
        batch = rows[place : place + size]
        rest = run.push(batch, run.now + 1)
        place += len(batch) - rest
        assert len(run.engine) <= limit
        if rest:
            deadline = run.engine.next_deadline()
            assert deadline is not None or not run.inside, "a full engine that waits for nothing would wait for ever"
            run.tick(run.now if deadline is None else max(deadline, run.now))
    run.flush()
    assert len(run.accounts) == len(rows)


@every_algorithm
def test_what_a_full_buffer_refused_is_learned_once(algorithm: str) -> None:
    """A model that learns from the stream must not count a row again because it was pushed again."""
    policy = "t, estimated"
    run = Run.of(policy, algorithm, StreamSettings(max_delay=MaxDelay(time=100.0), max_buffer=4))
    rows = [row_of(number) for number in range(7)]
    while run.push(rows) < len(rows):
        pass
    for _ in range(5):
        assert run.push(rows[4:]) == 3
    run.tick(200.0)
    assert not run.groups, "four rows were seen, and eight are asked for"
    assert sorted(run.suppressed) == [0, 1, 2, 3]


@every_algorithm
def test_what_is_handed_back_is_learned_once(algorithm: str) -> None:
    run = Run.of("t, estimated", algorithm, StreamSettings(max_delay=MaxDelay(time=100.0)))
    run.push([row_of(number) for number in range(5)])
    for _ in range(5):
        run.hand_back(run.remove(range(5)))
    run.tick(200.0)
    assert not run.groups, "five rows were seen, and eight are asked for"
    assert len(run.suppressed) == 5


HOLDING = [
    # remark, on_deadline, rows given up at the deadline, members of the group that forms later
    ("given up at the deadline", "suppress", [0], []),
    ("held back, and company for those who come later", "hold", [], [0, 1, 2]),
]


@every_algorithm
@pytest.mark.parametrize(("at_deadline", "given_up", "group"), [h[1:] for h in HOLDING], ids=[h[0] for h in HOLDING])
def test_rows_without_company_at_their_deadline(
    algorithm: str, at_deadline: str, given_up: list[int], group: list[int]
) -> None:
    run = Run.of("k", algorithm, StreamSettings(max_delay=MaxDelay(time=5.0), on_deadline=at_deadline))
    alone = row_of(0)
    run.push([alone], 0.0)
    while (deadline := run.engine.next_deadline()) is not None:
        assert deadline <= 5.0
        run.tick(deadline)
    assert run.now == 5.0, "nobody is given up or held back before the deadline"
    assert run.suppressed == given_up
    assert len(run.engine) == 1 - len(given_up)
    run.push([alone | {"person": 1}, alone | {"person": 2}], 6.0)
    run.tick(11.0)
    assert [sorted(found.rows.ref[:, 1].tolist()) for found in run.groups] == ([group] if group else [])
    run.flush()


@every_algorithm
def test_a_held_row_is_given_up_at_the_end(algorithm: str) -> None:
    run = Run.of("k", algorithm, StreamSettings(max_delay=MaxDelay(records=1), on_deadline="hold"))
    for number in range(6):
        run.push([row_of(0)], float(number))  # one and the same person
    assert len(run.engine) == 6
    run.flush()
    assert sorted(run.suppressed) == list(range(6))
    assert not run.groups
