"""Every privacy model against its definition, written out naively over people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from building import batch, patients
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_anon.core.batch import NO_GUARD, Batch
from stream_anon.core.gate import Reason, release
from stream_anon.core.hierarchy import Tree, branch
from stream_anon.core.loss.sensitive import sensitive_loss
from stream_anon.core.privacy import (
    AlphaK,
    DistinctL,
    EntropyL,
    GuardingNode,
    KAnonymity,
    LCAnonymity,
    PrivacyModel,
    RecursiveL,
    Requirements,
    RunningDistribution,
    RunningWishes,
    TCloseness,
)
from stream_anon.errors import PrivacyViolation
from stream_anon.testing.checks.models import adds_up, follows, repairs_for_good

Rows = list[tuple[int, int]]  # (person, value)
NEAR = 1e-9

# --- the definitions --------------------------------------------------------------------------------------------------


def people(rows: Rows) -> int:
    return len({person for person, _ in rows})


def holders(rows: Rows) -> Counter[int]:
    """How many different people have each value."""
    return Counter(value for _, value in set(rows))


def k_anonymous(rows: Rows, k: int) -> bool:
    return people(rows) >= k


def l_diverse(rows: Rows, l: int) -> bool:  # noqa: E741
    return len(holders(rows)) >= l


def entropy_l_diverse(rows: Rows, l: float) -> bool:  # noqa: E741
    counts = holders(rows)
    shares = [count / counts.total() for count in counts.values()]
    return -sum(share * math.log(share) for share in shares) >= math.log(l) - NEAR


def recursive_l_diverse(rows: Rows, l: int, c: float) -> bool:  # noqa: E741
    ordered = sorted(holders(rows).values(), reverse=True)
    return bool(ordered) and ordered[0] < c * sum(ordered[l - 1 :])


def lc_anonymous(rows: Rows, l: int, c: float, demands: dict[int, int]) -> bool:  # noqa: E741
    counts = holders(rows)
    wanted = max([demands.get(value, l) for value in counts] or [l])
    return len(counts) >= wanted and all(count / people(rows) <= c + NEAR for count in counts.values())


def alpha_k_anonymous(rows: Rows, k: int, alphas: dict[int, float], otherwise: float) -> bool:
    shares = {value: count / people(rows) for value, count in holders(rows).items()}
    return people(rows) >= k and all(share <= alphas.get(v, otherwise) + NEAR for v, share in shares.items())


def t_close(rows: Rows, t: float, whole: dict[int, float], ordered: bool) -> bool:
    counts = holders(rows)
    if not rows or not set(counts) <= set(whole):
        return t >= 1
    gaps = [counts[value] / counts.total() - whole[value] for value in sorted(whole)]
    if ordered:
        distance = sum(abs(sum(gaps[: i + 1])) for i in range(len(gaps) - 1)) / (len(gaps) - 1)
    else:
        distance = sum(abs(gap) for gap in gaps) / 2
    return distance <= t + NEAR


DEMANDS = {0: 4, 1: 3}
ALPHAS = {0: 0.25, 2: 0.5}
WHOLE = {0: 0.5, 1: 0.25, 2: 0.125, 3: 0.125}
REFERENCE = np.arange(4), np.array(list(WHOLE.values()))

MODELS: list[tuple[str, Callable[[int], PrivacyModel], Callable[[Rows], bool]]] = [
    # remark, model of a column, definition
    ("k = 1", lambda s: KAnonymity(1), lambda rows: k_anonymous(rows, 1)),
    ("k = 4", lambda s: KAnonymity(4), lambda rows: k_anonymous(rows, 4)),
    ("distinct l = 2", lambda s: DistinctL(s, 2), lambda rows: l_diverse(rows, 2)),
    ("distinct l = 4", lambda s: DistinctL(s, 4), lambda rows: l_diverse(rows, 4)),
    ("entropy l = 2", lambda s: EntropyL(s, 2), lambda rows: entropy_l_diverse(rows, 2)),
    ("entropy l = 1.5", lambda s: EntropyL(s, 1.5), lambda rows: entropy_l_diverse(rows, 1.5)),
    ("entropy l = 3", lambda s: EntropyL(s, 3), lambda rows: entropy_l_diverse(rows, 3)),
    ("recursive c = 1, l = 2", lambda s: RecursiveL(s, 2, 1.0), lambda rows: recursive_l_diverse(rows, 2, 1.0)),
    ("recursive c = 3, l = 2", lambda s: RecursiveL(s, 2, 3.0), lambda rows: recursive_l_diverse(rows, 2, 3.0)),
    ("recursive c = 0.5, l = 3", lambda s: RecursiveL(s, 3, 0.5), lambda rows: recursive_l_diverse(rows, 3, 0.5)),
    ("l = 2, c = 0.5", lambda s: LCAnonymity(s, 2, 0.5), lambda rows: lc_anonymous(rows, 2, 0.5, {})),
    (
        "l per value",
        lambda s: LCAnonymity(s, 2, 0.6, DEMANDS),
        lambda rows: lc_anonymous(rows, 2, 0.6, DEMANDS),
    ),
    (
        "one alpha",
        lambda s: AlphaK(s, 3, lambda value: 0.4),
        lambda rows: alpha_k_anonymous(rows, 3, {}, 0.4),
    ),
    (
        "alpha per value",
        lambda s: AlphaK(s, 2, lambda value: ALPHAS.get(value, 1.0)),
        lambda rows: alpha_k_anonymous(rows, 2, ALPHAS, 1.0),
    ),
    (
        "t = 0.3, equal distance",
        lambda s: TCloseness(s, 0.3, lambda: REFERENCE),
        lambda rows: t_close(rows, 0.3, WHOLE, False),
    ),
    (
        "t = 0.2, ordered distance",
        lambda s: TCloseness(s, 0.2, lambda: REFERENCE, ordered=True),
        lambda rows: t_close(rows, 0.2, WHOLE, True),
    ),
]
IDS = [m[0] for m in MODELS]

groups = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 3)), max_size=14)


def as_batch(rows: list[tuple[int, int, int]]) -> Batch:
    codes = [list(row[1:]) for row in rows]
    return batch(codes, [row[0] for row in rows]) if rows else batch([]).take([])


@pytest.mark.parametrize(("make", "definition"), [m[1:] for m in MODELS], ids=IDS)
@given(rows=groups)
@settings(max_examples=120, deadline=None)
def test_models_follow_their_definitions(
    make: Callable[[int], PrivacyModel], definition: Callable[[Rows], bool], rows: list[tuple[int, int, int]]
) -> None:
    follows(make(0), as_batch(rows), definition, [row[:2] for row in rows])


@given(rows=groups.filter(bool), first=st.sampled_from(MODELS), second=st.sampled_from(MODELS))
@settings(max_examples=150, deadline=None)
def test_several_models_and_columns_must_all_hold(
    rows: list[tuple[int, int, int]], first: tuple, second: tuple
) -> None:
    both = Requirements([first[1](0), second[1](1)])
    expected = [first[2]([row[:2] for row in rows]), second[2]([(row[0], row[2]) for row in rows])]
    assert both.holds(as_batch(rows)) == all(expected)
    failing = both.failing(as_batch(rows))
    assert (failing is None) if all(expected) else (failing is both.models[expected.index(False)])


@pytest.mark.parametrize("make", [m[1] for m in MODELS], ids=IDS)
@given(rows=groups, values=st.lists(st.integers(0, 4), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_gains_are_differences_of_shortfalls(
    make: Callable[[int], PrivacyModel], rows: list[tuple[int, int, int]], values: list[int]
) -> None:
    """For candidates who are new people; also for an empty group."""
    model = make(0)
    group = as_batch(rows) if rows else batch([[0, 0]]).take([])
    candidates = batch([[value, 0] for value in values], [100 + i for i in range(len(values))])
    adds_up(model, group, candidates)


def test_somebody_already_there_does_not_help_k() -> None:
    group, candidates = batch([0, 1], [1, 2]), batch([0, 1], [2, 3])
    assert KAnonymity(3).gains(group, candidates).tolist() == [0.0, 1.0]
    assert KAnonymity(2).gains(group, candidates).tolist() == [0.0, 0.0]


def test_gains_of_all_models_are_relative_to_what_is_missing() -> None:
    needs = Requirements([KAnonymity(4), DistinctL(0, 3), DistinctL(0, 1)])
    group, candidates = batch([0, 0], [1, 2]), batch([0, 1, 1], [3, 3, 2])
    assert needs.gains(group, candidates).tolist() == [0.5, 0.5 + 0.5, 0.5]


PEOPLE = [
    # remark, model, (person, value) rows that would pass if rows were counted
    ("k times the same person", KAnonymity(3), [(1, 0), (1, 1), (1, 2)]),
    ("one person repeats a value against the others", AlphaK(0, 2, lambda v: 0.5), [(1, 0), (2, 0), (3, 1), (3, 1)]),
    ("shares are of people", LCAnonymity(0, 2, 0.5), [(1, 0), (2, 0), (3, 1), (3, 1)]),
    ("a person's repetitions balance nothing", RecursiveL(0, 2, 2.0), [(1, 0), (2, 0), (3, 1), (3, 1)]),
]


@pytest.mark.parametrize(("model", "rows"), [c[1:] for c in PEOPLE], ids=[c[0] for c in PEOPLE])
def test_people_are_counted_not_rows(model: PrivacyModel, rows: Rows) -> None:
    values = [value for _, value in rows]
    assert model.shortfall(batch(values)) == 0.0, "each row a person of its own"
    assert model.shortfall(batch(values, [person for person, _ in rows])) > 0.0


def test_the_largest_k_of_all_models_is_known() -> None:
    assert Requirements([KAnonymity(3), AlphaK(0, 5, lambda value: 1.0)]).k == 5
    assert Requirements([DistinctL(0, 2)]).k == 1
    assert Requirements([KAnonymity(3), DistinctL(1, 2)]).distinct_only == [(1, 2)]
    assert Requirements([KAnonymity(3), EntropyL(1, 2)]).distinct_only is None


# --- guarding nodes ---------------------------------------------------------------------------------------------------

TREE = Tree(
    branch("any", {"stomach": ["ulcer", "gastritis"], "lung": {"infection": ["flu", "cough"], "rest": ["asthma"]}})
)
LEAVES = range(TREE.size)


def ancestors(node: int) -> list[int]:
    """The node and all above it."""
    return [node, *(ancestors(int(TREE.parent[node])) if TREE.parent[node] >= 0 else [])]


def leaves_below(node: int) -> set[int]:
    return {leaf for leaf in LEAVES if node in ancestors(leaf)}


def chance(rows: Batch, guard: int) -> float:
    """The chance that a person has a value below the guard, averaged over the people."""
    most: dict[int, float] = {}
    for person, node in zip(rows.subject.tolist(), rows.sensitive[:, 0].tolist(), strict=True):
        share = len(leaves_below(node) & leaves_below(guard)) / len(leaves_below(node))
        most[person] = max(most.get(person, 0.0), share)
    return sum(most.values()) / len(most)


def violation(rows: Batch, p: float) -> float:
    chances = [chance(rows, guard) for guard in rows.guard[:, 0].tolist() if guard != NO_GUARD]
    return sum(c - p for c in chances if c > p + NEAR)


@st.composite
def guarded_rows(draw: st.DrawFn, most: int = 8) -> Batch:
    values = draw(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=most))
    guards = [draw(st.sampled_from([NO_GUARD, *ancestors(value)[:-1]])) for value in values]
    subjects = draw(st.lists(st.integers(0, 5), min_size=len(values), max_size=len(values)))
    return batch(values, subjects, guards)


@given(rows=guarded_rows(), p=st.sampled_from([0.1, 0.25, 0.5, 0.75]))
@settings(max_examples=150, deadline=None)
def test_guarding_follows_its_definition(rows: Batch, p: float) -> None:
    model = GuardingNode(0, TREE, p)
    expected = [0.0 if guard == NO_GUARD else chance(rows, guard) for guard in rows.guard[:, 0].tolist()]
    assert model.breach(rows).tolist() == pytest.approx(expected)
    assert model.shortfall(rows) == pytest.approx(violation(rows, p))


@given(rows=guarded_rows(), more=guarded_rows(3), p=st.sampled_from([0.25, 0.5]))
@settings(max_examples=60, deadline=None)
def test_guarding_gains_are_differences_of_shortfalls(rows: Batch, more: Batch, p: float) -> None:
    candidates = batch(more.sensitive[:, 0].tolist(), [50 + i for i in range(len(more))], more.guard[:, 0].tolist())
    adds_up(GuardingNode(0, TREE, p), rows, candidates)


def better_by_one_raise(rows: Batch, p: float) -> bool:
    """Whether raising all rows of one person that have one value would lower the violation."""
    before = violation(rows, p)
    for person, node in set(zip(rows.subject.tolist(), rows.sensitive[:, 0].tolist(), strict=True)):
        for ancestor in ancestors(node)[1:]:
            codes = rows.sensitive.copy()
            codes[(rows.subject == person) & (codes[:, 0] == node), 0] = ancestor
            if violation(rows.with_sensitive(codes), p) < before - 1e-6:
                return True
    return False


@given(rows=guarded_rows(), p=st.sampled_from([0.2, 0.4, 0.6]), order=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_repair(rows: Batch, p: float, order: object) -> None:
    model = GuardingNode(0, TREE, p)
    before = rows.sensitive.copy()
    repairs_for_good(model, rows)
    repaired = model.repair(rows)
    assert all(
        new in ancestors(old) for old, new in zip(before[:, 0].tolist(), repaired.sensitive[:, 0].tolist(), strict=True)
    ), "a value becomes an ancestor of itself or stays"
    assert model.shortfall(repaired) == 0.0 or not better_by_one_raise(repaired, p)
    index = list(range(len(rows)))
    order.shuffle(index)  # type: ignore[attr-defined]
    shuffled = model.repair(rows.take(index))
    assert sorted(shuffled.sensitive[:, 0].tolist()) == sorted(repaired.sensitive[:, 0].tolist())


def test_repair_leaves_safe_rows_alone() -> None:
    flu, ulcer = (TREE.labels.index(name) for name in ("flu", "ulcer"))
    rows = batch([flu, ulcer], guard=[flu, NO_GUARD])
    assert GuardingNode(0, TREE, 0.5).repair(rows) is rows


def test_repair_raises_all_rows_of_a_person() -> None:
    """A person with two telling rows is not helped by hiding one of them."""
    flu, cough = (TREE.labels.index(name) for name in ("flu", "cough"))
    infection = TREE.labels.index("infection")
    model = GuardingNode(0, TREE, 0.4)
    for values in ([flu, flu], [flu, cough]):
        rows = batch(values, [1, 1], [infection, NO_GUARD])
        repaired = model.repair(rows)
        assert model.shortfall(repaired) == 0.0
        assert {TREE.labels[node] for node in repaired.sensitive[:, 0].tolist()} == {"any"}


def test_repair_prefers_what_costs_least() -> None:
    flu, ulcer, infection = (TREE.labels.index(name) for name in ("flu", "ulcer", "infection"))
    repaired = GuardingNode(0, TREE, 0.5).repair(batch([flu, ulcer], guard=[flu, ulcer]).take([0]))
    assert repaired.sensitive.tolist() == [[infection]]
    assert sensitive_loss(TREE, infection) == 0.25


# --- models that learn ------------------------------------------------------------------------------------------------


def test_closeness_is_never_given_before_enough_rows() -> None:
    running = RunningDistribution(0, after=4)
    model = TCloseness(0, 0.99, running, learn=running.learn)
    group = batch([0, 1])
    for seen in ([], [0], [1, 0]):
        model.observe(batch(seen).take([]) if not seen else batch(seen))
        assert model.shortfall(group) > 0.0
    model.observe(batch([1]))
    assert model.shortfall(group) == 0.0
    assert model.shortfall(batch([0, 7])) > 0.0, "a value never seen"


def test_alphas_are_never_given_before_enough_rows() -> None:
    wishes = RunningWishes(0, after=4, floor=0.5)
    model = AlphaK(0, 2, wishes, wishes.learn)
    group = batch([0, 1])
    model.observe(batch([0, 1, 0], psf=[-1, 1, -1]))
    assert model.shortfall(group) > 0.0
    model.observe(batch([1], psf=[0]))
    assert model.shortfall(group) == 0.0
    assert (wishes(0), wishes(1), wishes(7)) == (1.0, 0.5, None)
    assert model.shortfall(batch([0, 7])) > 0.0, "nothing is known of this value"


LEARNING = [  # bounds that forbid nothing once they are known
    "{model: t_closeness, attribute: illness, t: 1, estimate: {after: 3}}",
    "{model: alpha_k, attribute: illness, k: 2, estimate: {after: 3}}",
]


@pytest.mark.parametrize("model", LEARNING)
def test_the_gate_stays_shut_until_enough_was_seen(tmp_path: Path, model: str) -> None:
    schema = patients(tmp_path, "{model: k_anonymity, k: 2}", model)
    rows = batch([0, 2, 3], qi=[[30, 2139], [31, 2139], [32, 2139]], psf=[-1, -1, -1])
    schema.requirements.observe(rows.take([0, 1]))
    with pytest.raises(PrivacyViolation, match=schema.requirements.models[1].name):
        release(rows, schema, Reason.READY)
    schema.requirements.observe(rows.take([2]))
    assert len(release(rows, schema, Reason.READY).rows) == 3
