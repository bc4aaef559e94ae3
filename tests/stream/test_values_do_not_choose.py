"""Values may veto, never choose: who knows the members' quasi-identifiers cannot tell who has the rare value.

The attacker knows the quasi-identifiers of all members, and guesses for every group with a lone holder of a rare value
the member that lies furthest from the others: one who was pulled in for his value would be found so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.policy import Policy
from stream_anon.policy.settings import STREAM_ALGORITHMS
from stream_anon.stream import build

K, ROWS, DELAY = 5, 2_000, 300
SEX = {"kind": "flat", "values": ["f", "m"]}
JOBS = {"kind": "tree", "tree": {"any": {f"g{g}": [f"j{g}{i}" for i in range(4)] for g in range(4)}}}
AGES = {"kind": "interval", "range": [0, 99], "snap": "none"}
VALUES = {"kind": "flat", "values": [f"v{i}" for i in range(20)]}

MODELS: dict[str, dict[str, Any]] = {
    "distinct": {"model": "l_diversity", "l": 2},
    "recursive": {"model": "l_diversity", "l": 2, "variant": "recursive", "c": 150},
    "l and c": {"model": "lc_anonymity", "l": 2, "c": 0.99},
    "alpha": {"model": "alpha_k", "k": K, "alpha": 0.99},
}
SKEWS = [0.05, 0.2]


def schema(model: dict[str, Any], algorithm: dict[str, Any]) -> Schema:
    quasi = {"age": ("integer", AGES), "job": ("category", JOBS), "sex": ("category", SEX)}
    return Schema.of(
        Policy.model_validate(
            {
                "version": 1,
                "name": "attacked",
                "secret": "a secret that the attacker does not know",
                "attributes": {
                    name: {"role": "quasi_identifier", "type": kind, "hierarchy": hierarchy}
                    for name, (kind, hierarchy) in quasi.items()
                }
                | {"ill": {"role": "sensitive", "hierarchy": VALUES}},
                "privacy": [{"model": "k_anonymity", "k": K}, {"attribute": "ill", **model}],
                "stream": {"max_delay": {"records": DELAY}},
                "algorithm": algorithm,
            }
        )
    )


def made_up(rare: float, values: int) -> Batch:
    rng = np.random.default_rng(8)
    shares = np.r_[1 - rare, np.full(values - 1, rare / (values - 1))]
    nothing = np.zeros((ROWS, 1), dtype=np.int64)
    ages = np.clip(rng.normal(45, 18, ROWS), 0, 99).astype(np.int64)
    number = np.arange(ROWS)
    return Batch(
        qi=np.stack([ages, rng.integers(0, 16, ROWS), rng.integers(0, 2, ROWS)], axis=1),
        sensitive=rng.choice(values, (ROWS, 1), p=shares).astype(np.int64),
        guard=np.full((ROWS, 1), NO_GUARD),
        psf=nothing,
        subject=number,
        arrived=np.zeros(ROWS),
        ref=np.stack([np.zeros(ROWS, dtype=np.int64), number], axis=1),
        serial=np.full(ROWS, UNNUMBERED),
        values=np.full((ROWS, 1), None, dtype=object),
    )


def released(of: Schema, rows: Batch) -> tuple[list[Group], Batch | None]:
    engine, groups, lost = build(of), [], []
    for first in range(0, ROWS, 100):
        outcome = engine.push(rows.take(slice(first, first + 100)), 0.0)
        groups += outcome.groups
        lost += [outcome.suppressed] if outcome.suppressed is not None else []
    outcome = engine.flush()
    lost += [outcome.suppressed] if outcome.suppressed is not None else []
    return groups + outcome.groups, Batch.concat(lost) if lost else None


def furthest(group: Group, of: Schema) -> int:
    """The member without whom the box would cost least."""
    qi = group.rows.qi

    def price(rows: np.ndarray) -> float:
        low, high = rows.min(axis=0), rows.max(axis=0)
        return sum(float(c.hierarchy.loss(low[q], high[q])) * c.weight for q, c in enumerate(of.quasi))

    return int(np.argmin([price(np.delete(qi, i, axis=0)) for i in range(len(qi))]))


ALGORITHMS: dict[str, dict[str, Any]] = {name: {"name": name} for name in STREAM_ALGORITHMS.words}
ALGORITHMS["standing"] = {"name": "cail", "clusters": "standing"}


CASES = [("cail", model, rare) for model in MODELS for rare in SKEWS]
CASES += [(name, "distinct", 0.05) for name in ALGORITHMS if name != "cail"]


@pytest.mark.parametrize(("algorithm", "model", "rare"), CASES)
def test_a_lone_holder_is_not_found_by_his_place(algorithm: str, model: str, rare: float) -> None:
    of = schema(MODELS[model], ALGORITHMS[algorithm])
    rows = made_up(rare, 2 if rare < 0.1 else 20)
    groups, lost = released(of, rows)
    found, chance, lone = 0, 0.0, 0
    for group in groups:
        holders = np.flatnonzero(group.rows.sensitive[:, 0] != 0)
        if len(holders) == 1 and len(group) >= K:
            lone += 1
            chance += 1 / len(group)
            found += furthest(group, of) == holders[0]
    assert lone >= 20
    spread = 3 * np.sqrt(lone) / lone
    assert found / lone <= 1.2 * chance / lone + spread, (found, lone, chance)
    assert len(rows) - (0 if lost is None else len(lost)) >= 0.98 * len(rows)


@pytest.mark.parametrize("algorithm", ["cail", "fads"])
def test_groups_of_people_alone_are_blind_to_values(algorithm: str) -> None:
    """Where no block is refused, other values in the same rows change no group."""
    of = schema({"model": "l_diversity", "l": 2}, ALGORITHMS[algorithm])
    rows = made_up(0.9, 20)
    shuffled = rows.with_sensitive(np.random.default_rng(1).permutation(rows.sensitive, axis=0))
    ours, others = ({tuple(map(tuple, g.members.tolist())) for g in released(of, r)[0]} for r in (rows, shuffled))
    assert len(ours ^ others) <= 0.1 * len(ours)
