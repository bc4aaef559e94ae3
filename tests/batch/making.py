"""Makers of tables for the batch algorithms: schemas from a policy's parts, rows from plain records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.policy import load

YEARS = {"role": "quasi_identifier", "type": "integer"}
NAMES = {"role": "quasi_identifier", "type": "category"}


def number(low: int, high: int, **more: Any) -> dict[str, Any]:
    return YEARS | {"hierarchy": {"kind": "interval", "range": [low, high], "snap": "none"} | more}


def names(**hierarchy: Any) -> dict[str, Any]:
    return NAMES | {"hierarchy": hierarchy}


def schema_of(
    folder: Path, attributes: Mapping[str, Any], privacy: Sequence[Mapping[str, Any]], subject: str | None = None
) -> Schema:
    """The schema; a policy that does not say how many people a group needs asks for two."""
    policy = {
        "version": 1,
        "name": "table",
        "secret": "0123456789abcdef0123456789abcdef",
        "attributes": dict(attributes),
    }
    counted = any(model["model"] in ("k_anonymity", "alpha_k") for model in privacy)
    models = [*([] if counted else [{"model": "k_anonymity", "k": 2}]), *(dict(model) for model in privacy)]
    policy |= {"privacy": models} | ({"subject": subject} if subject else {})
    path = folder / "policy.yaml"
    path.write_text(json.dumps(policy), encoding="utf-8")  # JSON is YAML, and keeps the order of the columns
    return Schema.compile(load(path, {}))


def rows_of(schema: Schema, records: Sequence[Mapping[str, Any]]) -> Batch:
    n = len(records)
    ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
    encoded = Encoder(schema).encode(records, ref, np.zeros(n))
    assert not encoded.rejections, encoded.rejections[:3]
    return encoded.batch


def classes(found: Sequence[Any], first: int = 1) -> set[tuple[int, ...]]:
    return {tuple(sorted((index + first).tolist())) for index in found}


def people(count: int, seed: int = 0, persons: int | None = None) -> list[dict[str, Any]]:
    """Records with uneven, dependent values; several records per person if `persons` is given."""
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
