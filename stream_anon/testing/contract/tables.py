"""The tables and policies that batch algorithms are checked with: every privacy model, uneven and dependent values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.policy import Policy
from stream_anon.testing.contract.rule import rule

K = {"model": "k_anonymity", "k": 4}
ON = {"attribute": "ill"}
REFERENCE = {"flu": 6, "cough": 4, "asthma": 3, "ulcer": 3, "gastritis": 2, "colitis": 2}
DEMANDS = {"ulcer": {"l": 4, "sensitivity": 0.9}, "flu": {"l": 2, "sensitivity": 0.1}}
CLOSE = {"model": "t_closeness"} | ON
POLICIES: dict[str, list[dict[str, Any]]] = {
    "k_anonymity": [K],
    "l_diversity (distinct)": [K, {"model": "l_diversity", "l": 3} | ON],
    "l_diversity (entropy)": [K, {"model": "l_diversity", "l": 2, "variant": "entropy"} | ON],
    "l_diversity (recursive)": [K, {"model": "l_diversity", "l": 2, "variant": "recursive", "c": 2.0} | ON],
    "lc_anonymity": [K, {"model": "lc_anonymity", "l": 2, "c": 0.6, "values": DEMANDS} | ON],
    "alpha_k": [{"model": "alpha_k", "k": 4, "alpha": {"flu": 0.5, "ulcer": 0.4}, "default": 0.75} | ON],
    "alpha_k from wishes": [{"model": "alpha_k", "k": 4, "estimate": {"after": 100}, "floor": 0.4} | ON],
    "t_closeness": [K, CLOSE | {"t": 0.4, "reference": REFERENCE}],
    "t_closeness ordered": [K, CLOSE | {"t": 0.4, "distance": "ordered", "estimate": {"after": 9}}],
    "guarding_node": [K, {"model": "guarding_node", "p": 0.6} | ON],
    "several": [K, {"model": "l_diversity", "l": 2} | ON, CLOSE | {"t": 0.5, "reference": REFERENCE}],
}


def number(low: int, high: int, **more: Any) -> dict[str, Any]:
    """Return a quasi-identifier of whole numbers."""
    hierarchy = {"kind": "interval", "range": [low, high], "snap": "none"} | more
    return {"role": "quasi_identifier", "type": "integer", "hierarchy": hierarchy}


def names(**hierarchy: Any) -> dict[str, Any]:
    """Return a quasi-identifier of names."""
    return {"role": "quasi_identifier", "type": "category", "hierarchy": hierarchy}


ILLNESSES = {"any": {"lung": ["flu", "cough", "asthma"], "stomach": ["ulcer", "gastritis"], "gut": ["colitis"]}}

JOBS = {"clinic": ["nurse", "doctor"], "kitchen": ["cook", "baker"], "office": ["clerk"]}

ATTRIBUTES: dict[str, Any] = {
    "who": {"role": "identifier"},
    "age": number(18, 90),
    "zip": names(kind="prefix", length=3),
    "sex": names(kind="flat", values=["f", "m"]),
    "job": names(kind="tree", tree={"*": JOBS}),
    "ill": {
        "role": "sensitive", "hierarchy": {"kind": "tree", "tree": ILLNESSES}, "guarding_node": "guard", "psf": "wish",
    },
    "ward": {"role": "insensitive"},
}  # fmt: skip


def table_schema(policy: str) -> Schema:
    """Return the schema of one of the policies."""
    return Schema.of(
        Policy.model_validate(
            {
                "version": 1,
                "name": "table",
                "subject": "who",
                "secret": "0123456789abcdef0123456789abcdef",
                "attributes": ATTRIBUTES,
                "privacy": POLICIES[policy],
            }
        )
    )


def rows_of(schema: Schema, records: Sequence[Mapping[str, Any]]) -> Batch:
    """Return records as an algorithm sees them."""
    n = len(records)
    ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
    encoded = Encoder(schema).encode([dict(record) for record in records], ref, np.zeros(n))
    rule("rows-can-be-read", not encoded.rejections, f"rows were rejected: {encoded.rejections[:3]}")
    return encoded.batch


def people(count: int, seed: int = 0, persons: int | None = None) -> list[dict[str, Any]]:
    """Return records with uneven, dependent values; several records per person if `persons` is given."""
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 4, count)
    diseases = ["flu", "cough", "asthma", "ulcer", "gastritis", "colitis"]
    weights = np.array([6, 4, 3, 3, 2, 2]) / 20
    guards = {"flu": "lung", "cough": "cough", "asthma": "", "ulcer": "stomach", "gastritis": "", "colitis": "any"}
    ill = rng.choice(diseases, count, p=weights)
    return [
        {
            "who": f"p{rng.integers(persons) if persons else i}",
            "age": int(np.clip(rng.normal(35 + 8 * region[i], 9), 18, 90)),
            "zip": f"0{region[i]}{rng.integers(10)}",
            "sex": str(rng.choice(["f", "m"])),
            "job": str(rng.choice(["nurse", "doctor", "cook", "baker", "clerk"])),
            "ill": str(ill[i]),
            "guard": guards[str(ill[i])] if rng.random() < 0.3 and ill[i] != "colitis" else "",
            "wish": int(rng.integers(-1, 2)),
            "ward": "abc"[i % 3],
        }
        for i in range(count)
    ]
