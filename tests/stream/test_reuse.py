"""Reuse of released groups: a row may join one, but only if everybody under its id still satisfies the policy."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from cases import POLICIES, row_of
from contract import Run, deliver

from stream_anon.core.gate import Group, Reason, release, reuse
from stream_anon.errors import PrivacyViolation
from stream_anon.policy.settings import MaxDelay, StreamSettings
from stream_anon.testing.contract.definitions import satisfied

STREAM = StreamSettings(max_delay=MaxDelay(records=20))


class Reusing(Run):
    """A run that judges what is added to a group together with the group."""

    def _check_group(self, group: Group) -> None:
        if group.reason is not Reason.REUSED:
            super()._check_group(group)
            return
        [number] = group.rows.ref[:, 1].tolist()
        assert self.inside.pop(number), "a row left that was not inside"


@pytest.mark.parametrize("policy", ["k", "k and distinct l", "l and c", "entropy l", "guarding nodes"])
@pytest.mark.parametrize("algorithm", ["castle", "fads"])
def test_everybody_under_an_id_satisfies_the_policy(algorithm: str, policy: str) -> None:
    run = Reusing.of(policy, algorithm, STREAM, {"reuse": True})
    deliver(run, [row_of(number * 40503) for number in range(300)], lambda: 9, lambda: 0)
    run.flush()
    together: dict[str, list[Group]] = defaultdict(list)
    for group in run.groups:
        together[group.id].append(group)
    reused = any(group.reason is Reason.REUSED for group in run.groups)
    assert reused == (policy != "guarding nodes"), "what was raised cannot be judged anew"
    for groups in together.values():
        records = [record for group in groups for record in group.records()]
        rows = [run.accounts[int(number)].row for group in groups for number in group.rows.ref[:, 1]]
        assert [record["_anon"]["row"] for record in records] == list(range(len(records)))
        assert all(group.labels == groups[0].labels for group in groups)
        assert satisfied(POLICIES[policy], rows, records, run.seen)
        for row, record in zip(rows, records, strict=True):
            assert all(c.hierarchy.contains(record[c.name], row[c.name]) for c in run.schema.quasi)


@pytest.mark.parametrize("algorithm", ["castle", "fads"])
def test_nothing_is_reused_unless_asked_for(algorithm: str) -> None:
    run = Run.of("k", algorithm, STREAM)
    deliver(run, [row_of(number * 40503) for number in range(300)], lambda: 9, lambda: 0)
    run.flush()
    assert not any(group.reason is Reason.REUSED for group in run.groups)


def test_a_row_joins_only_where_it_fits_and_only_once() -> None:
    run = Run.of("l and c", "fads", STREAM)
    same = {"person": 1, "age": 30, "since": 2001, "job": "smith", "sex": "f", "zip": "021", "day": "2024-05-01"}
    rest = {"pay": "low", "ward": "w", "guard": None, "wish": 0}
    cases = [
        # person, age, illness
        (1, 30, "flu"),
        (2, 30, "ulcer"),
        (3, 30, "burn"),
        (4, 31, "burn"),
        (5, 30, "flu"),
        (6, 30, "flu"),
    ]
    rows = run.encode([same | rest | {"person": p, "age": a, "illness": i} for p, a, i in cases], 0.0)
    host = release(rows.take([0, 1]), run.schema, Reason.READY)
    assert reuse(rows.take([3]), host) is None, "it lies outside the box"
    assert reuse(rows.take([4]), host) is None, "two of three would have the flu, more than half"
    grown = reuse(rows.take([2]), host)
    assert grown is not None
    assert (grown.id, grown.people, grown.labels) == (host.id, 3, host.labels)
    assert [record["_anon"]["size"] for record in grown.records()] == [3]
    again = reuse(rows.take([5]), grown)
    assert again is not None, "two of four are just half"
    with pytest.raises(PrivacyViolation):
        reuse(rows.take([5]), again)
    assert np.array_equal(again.everyone.ref[:, 1], [*host.rows.ref[:, 1], 2, 5])
