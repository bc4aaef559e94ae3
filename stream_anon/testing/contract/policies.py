"""The policies and rows that stream algorithms are checked with: every privacy model, alone and with others."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from typing import Any

from stream_anon.core.schema import Schema
from stream_anon.policy import Policy
from stream_anon.policy.settings import StreamAlgorithmSettings, StreamSettings
from stream_anon.testing.contract.definitions import ILLNESSES, LEAVES, PATHS, Row

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
    "age": {
        "role": "quasi_identifier",
        "type": "integer",
        "hierarchy": {"kind": "interval", "range": [0, 99], "snap": "none"},
    },
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
    return Schema.of(
        Policy.model_validate(
            {
                "version": 1,
                "name": "contract",
                "subject": "person",
                "secret": "a secret only for the tests, of no value",
                "attributes": ATTRIBUTES,
                "privacy": POLICIES[policy],
            }
        )
    )


def schema_under(policy: str, algorithm: StreamAlgorithmSettings, stream: StreamSettings) -> Schema:
    """Return a schema that has learned nothing yet, for any algorithm and bound."""
    schema = _compiled(policy)
    return replace(
        schema,
        policy=schema.policy.model_copy(update={"stream": stream, "algorithm": algorithm}),
        requirements=copy.deepcopy(schema.requirements),
    )


ROOT = next(iter(ILLNESSES))
JOBS = ["mason", "smith", "clerk", "judge", "poet"]
WAGES = ["low", "fair", "high"]


def row_of(number: int) -> Row:
    """Return a row for a number: similar numbers give similar rows, and people repeat."""

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
