"""Values may veto, never choose: minimality attackers read them where they chose, and not from our algorithms.

The long form, with every skew and with replays of every algorithm, is `benchmarks/minimality.py`.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_anon.core.batch import Batch
from stream_anon.insight.minimality import Found, Published, StreamRun, minimality
from stream_anon.insight.minimality.runs import Replay

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))  # last: some of them are called like packages
_SPEC = importlib.util.spec_from_file_location("minimality_benchmark", BENCHMARKS / "minimality.py")
assert _SPEC is not None
assert _SPEC.loader is not None
BENCH: Any = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = BENCH
_SPEC.loader.exec_module(BENCH)
K = BENCH.K


class ByValue:
    """Rows by age, k at a time; where all have one value, the next row with another one is pulled in."""

    grain = 1

    def __init__(self, rows: Batch, blind: bool) -> None:
        self._blind = blind
        self.groups = self._divide(rows)
        self.suppressed = np.empty(0, dtype=np.int64)

    def _divide(self, rows: Batch) -> list[Published]:
        order = np.argsort(rows.qi[:, 0], kind="stable").tolist()
        found = []
        while len(order) >= 2 * K:
            group, order = order[:K], order[K:]
            value = rows.sensitive[:, 0]
            if not self._blind and len(set(value[group].tolist())) == 1:
                other = next((i for i in order if value[i] != value[group[0]]), None)
                if other is not None:
                    order.remove(other)
                    group.append(other)
            found.append(Published(np.sort(np.array(group)), len(rows) - 1))
        return found

    def replays(self, chosen: Sequence[int]) -> Iterator[tuple[int, Replay]]:
        for number in chosen:
            wanted = self.groups[number].members
            yield (
                number,
                lambda rows, wanted=wanted: any(np.array_equal(group.members, wanted) for group in self._divide(rows)),
            )


def attacked(rare: float, values: int, rows: int, model: str, algorithm: str) -> tuple[list[Found], Any, Batch]:
    share = BENCH.shares(rare, values)
    table, settings = BENCH.made_up(share, rows), BENCH.STREAM.get(algorithm, BENCH.STREAM["cail"])
    people = {"model": "k_anonymity", "k": K}
    of = BENCH.schema([people, {"attribute": "ill", **BENCH.models(share)[model]}], settings, share)
    made = BENCH.run(of, table, algorithm)
    blind = BENCH.run(BENCH.schema([people], settings, share), table, algorithm)
    return minimality(of, table, made, blind), made, table


def test_who_chooses_by_value_is_found_out() -> None:
    share = BENCH.shares(0.1, 2)
    rows = BENCH.made_up(share, 600)
    of = BENCH.schema(
        [{"model": "k_anonymity", "k": K}, {"attribute": "ill", "model": "l_diversity", "l": 2}],
        BENCH.STREAM["cail"],
        share,
    )
    found = {each.attacker: each for each in minimality(of, rows, ByValue(rows, False), ByValue(rows, True), 60)}
    assert found["everybody"].posterior > 0.9
    assert found["everybody"].posterior > 1.2 * found["everybody"].allowed
    assert found["members"].posterior > 1.2 * found["members"].allowed
    assert found["everybody"].least == 0.5


def test_who_does_not_look_at_values_is_not() -> None:
    share = BENCH.shares(0.2, 2)
    rows = BENCH.made_up(share, 600)
    of = BENCH.schema([{"model": "k_anonymity", "k": K}], BENCH.STREAM["cail"], share)
    blind = ByValue(rows, True)
    for found in minimality(of, rows, blind, blind, 60):
        assert found.gain <= 1.2


CASES = [(algorithm, model, 0.2, 20) for algorithm in BENCH.USUAL for model in BENCH.models(BENCH.shares(0.2, 20))]
CASES += [(algorithm, model, 0.05, 2) for algorithm in BENCH.USUAL for model in ("distinct", "alpha")]


@pytest.mark.parametrize(("algorithm", "model", "rare", "values"), CASES)
def test_values_cannot_be_read_out_of_groups(algorithm: str, model: str, rare: float, values: int) -> None:
    """No attacker is right a fifth more often than the value's share in the group, or 1/l, lets everybody be."""
    found, made, rows = attacked(rare, values, 1_500, model, algorithm)
    assert found
    for each in found:
        assert each.gain <= 1.2, (each.attacker, each.sign, each.posterior, each.allowed)
    assert BENCH.same_shares(rows.sensitive[:, 0], made.suppressed, 400) > 0.01
    assert len(made.suppressed) <= 0.1 * len(rows)


def test_values_cannot_be_read_by_replaying() -> None:
    share = BENCH.shares(0.2, 20)
    rows = BENCH.made_up(share, 500)
    people = {"model": "k_anonymity", "k": K}
    of = BENCH.schema([people, {"attribute": "ill", "model": "l_diversity", "l": 3}], BENCH.STREAM["cail"], share)
    made = StreamRun(of, rows)
    found = next(
        each
        for each in minimality(of, rows, made, StreamRun(BENCH.schema([people], {"name": "cail"}, share), rows), 34)
        if each.attacker == "everybody"
    )
    assert found.gain <= 1.2
