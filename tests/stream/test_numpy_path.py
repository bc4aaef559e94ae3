"""Compiled and numpy kernels: the same choices to the last bit, ties included."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from cases import ALGORITHMS, POLICIES, VARIANTS, WAGES, row_of, schema_of
from contract import Run, deliver
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_anon.core.kernels import COMPILED, SHORT
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.stream.kernels import Columns, Counted, Kernels
from stream_anon.testing.contract.definitions import LEAVES, PATHS

pytestmark = pytest.mark.skipif(not COMPILED, reason="numba is not installed: there is only one path")

CASES = [("by default", name, {}) for name in ALGORITHMS] + VARIANTS
STREAMS = [
    # remark, policy, people, groups of look-alikes, max_delay
    ("varied", "k", 40, 400, MaxDelay(records=60)),
    ("hardly any differences, so many ties", "several sensitive attributes", 7, 3, MaxDelay(records=25)),
    ("repeating, both bounds", "l and c", 400, 30, MaxDelay(records=45, time=30.0)),
    ("a long wait for small groups", "k", 300, 50, MaxDelay(records=110)),
]


def random_rows(seed: int, people: int, kinds: int, count: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    rows = [row_of(int(number)) for number in random.integers(0, 2**48, size=kinds)]
    return [
        rows[random.integers(kinds)]
        | {
            "person": int(random.integers(people)),
            "illness": LEAVES[random.integers(len(LEAVES))],
            "pay": WAGES[random.integers(3)],
            "guard": None,
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize(("algorithm", "changed"), [c[1:] for c in CASES], ids=[f"{c[1]}: {c[0]}" for c in CASES])
@pytest.mark.parametrize(("policy", "people", "kinds", "bound"), [s[1:] for s in STREAMS], ids=[s[0] for s in STREAMS])
def test_engines_publish_the_same_groups(
    algorithm: str, changed: dict[str, Any], policy: str, people: int, kinds: int, bound: MaxDelay
) -> None:
    rows = random_rows(people, people, kinds, 180)
    told = []
    for compiled in (True, False):
        run = Run.of(policy, algorithm, StreamSettings(max_delay=bound), changed, compiled)
        deliver(run, rows, lambda: 37, lambda: 1)
        run.flush()
        told.append(([group.encoded() for group in run.groups], run.suppressed))
    assert told[0] == told[1]
    assert told[0][0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_gives_the_same_groups(algorithm: str, policy: str) -> None:
    rows = random_rows(7, 20, 60, 40)
    for row in rows[::4]:
        row["guard"] = PATHS[row["illness"]][1]
    told = []
    for compiled in (True, False):
        run = Run.of(policy, algorithm, StreamSettings(max_delay=MaxDelay(records=12)), None, compiled)
        deliver(run, rows, lambda: 10, lambda: 1)
        run.flush()
        told.append(([group.encoded() for group in run.groups], run.suppressed))
    assert told[0] == told[1]
    assert told[0][0]


# --- the kernels by themselves ----------------------------------------------------------------------------------------


def both(schema: Schema) -> tuple[Kernels, Kernels]:
    prices, hierarchies = schema.counted("ncp")
    return Kernels(prices, hierarchies, compiled=True), Kernels(prices, hierarchies, compiled=False)


@pytest.fixture(scope="module", params=[0, SHORT], ids=["ladders climbed", "ladders looked up"])
def schema(request: pytest.FixtureRequest) -> Schema:
    with mock.patch("stream_anon.core.kernels.SHORT", request.param):
        return schema_of("several sensitive attributes", "fads", StreamSettings())


@pytest.fixture(scope="module")
def rows(schema: Schema) -> Columns:
    """Columns of 300 rows, about every second of them a twin of another in what it is likely to be."""
    run = Run("k", None, schema)  # type: ignore[arg-type]  # only to encode
    batch = run.encode(random_rows(11, 60, 150, 300), 0.0)
    return Columns(batch.qi, batch.subject, batch.sensitive, batch.serial, batch.arrived)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    """Seed, candidates (no slot twice), bonuses, need and limit."""
    slots = draw(st.lists(st.integers(0, 299), min_size=1, max_size=60, unique=True))
    seeds = draw(st.integers(1, min(4, len(slots))))
    candidates = slots[seeds:]
    amounts = st.sampled_from([0.0, 0.0, 0.1, 0.25, 2.0])
    bonus = draw(st.lists(amounts, min_size=len(candidates), max_size=len(candidates)))
    need = draw(st.integers(1, 9)), draw(st.tuples(st.integers(0, 5), st.integers(0, 4)))
    limit = draw(st.sampled_from([np.inf, np.inf, 0.0, 0.2, 0.8, 3.0]))
    return slots[:seeds], candidates, bonus, need, limit


def ints(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@given(case=cases())
@settings(max_examples=250, deadline=None)
def test_growing(schema: Schema, rows: Columns, case: tuple[Any, ...]) -> None:
    seed, candidates, bonus, (k, values), limit = case
    need = Counted(k, ints(values))
    fast, plain = (
        kernels.grow(rows, ints(seed), ints(candidates), np.array(bonus), need, limit) for kernels in both(schema)
    )
    assert fast[0].tolist() == plain[0].tolist()
    members = fast[0].tolist()
    if not members:
        return
    assert fast[1] == plain[1], "the price too is the same to the last bit"
    assert members[: len(seed)] == seed
    assert len(set(members)) == len(members)
    assert set(members) <= {*seed, *candidates}
    assert len(set(rows.subject[members].tolist())) >= k
    for s, wanted in enumerate(values):
        assert len(set(rows.sensitive[members, s].tolist())) >= wanted
    joined = rows.subject[members[len(seed) :]].tolist()
    assert len(set(joined)) == len(joined), "nobody joins twice"


@given(case=cases())
@settings(max_examples=150, deadline=None)
def test_growing_takes_the_nearest(schema: Schema, rows: Columns, case: tuple[Any, ...]) -> None:
    """For k alone, each step against the plain rule: the first of least distance minus bonus among new people."""
    seed, candidates, bonus, (k, _), limit = case
    kernels = both(schema)[0]
    need = Counted(k, ints([0, 0]))
    members = seed.copy()
    while len(set(rows.subject[members].tolist())) < k:
        scored = []
        here = rows.qi[members]
        low, high = here.min(axis=0), here.max(axis=0)
        before = kernels.box_price(low, high)
        for i, slot in enumerate(candidates):
            if rows.subject[slot] in rows.subject[members]:
                continue
            after = kernels.box_price(np.minimum(low, rows.qi[slot]), np.maximum(high, rows.qi[slot]))
            distance = after + (after - before) * np.log2(len(members))
            if distance <= limit:
                scored.append((distance - bonus[i], i))
        if not scored:
            members = []
            break
        members.append(candidates[min(scored)[1]])
    found = kernels.grow(rows, ints(seed), ints(candidates), np.array(bonus), need, limit)[0]
    assert found.tolist() == members


@given(slots=st.lists(st.integers(0, 299), min_size=1, max_size=40), pair=st.tuples(*[st.integers(0, 299)] * 2))
@settings(max_examples=100, deadline=None)
def test_prices(schema: Schema, rows: Columns, slots: list[int], pair: tuple[int, int]) -> None:
    box = rows.qi[list(pair)]
    low, high = box.min(axis=0), box.max(axis=0)
    fast, plain = both(schema)
    expected = plain.union_prices(rows.qi, ints(slots), low, high)
    assert fast.union_prices(rows.qi, ints(slots), low, high).tolist() == expected.tolist()
    lows, highs = np.minimum(rows.qi[slots], low), np.maximum(rows.qi[slots], high)
    assert fast.box_prices(lows, highs).tolist() == expected.tolist()
    assert [fast.box_price(*ends) for ends in zip(lows, highs, strict=True)] == expected.tolist()
    widened = plain.widened_prices(rows.qi, pair[0], lows, highs)
    assert fast.widened_prices(rows.qi, pair[0], lows, highs).tolist() == widened.tolist()
    assert (widened >= 0.0).all()
    assert (widened <= 1.0 + 1e-9).all()
