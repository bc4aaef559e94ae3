"""Made-up visits to a clinic, and a policy for them; the other examples use both."""

from __future__ import annotations

import random
from typing import Any

import stream_anon

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "visits",
    "subject": "patient",
    "secret": "only-for-examples-make-your-own-secret",
    "attributes": {
        "patient": {"role": "identifier"},
        "age": {
            "role": "quasi_identifier",
            "type": "integer",
            "hierarchy": {"kind": "interval", "range": [0, 120], "snap": [5, 10, 20]},
        },
        "zip": {"role": "quasi_identifier", "type": "category", "hierarchy": {"kind": "prefix", "length": 5}},
        "diagnosis": {"role": "sensitive"},
    },
    "privacy": [
        {"model": "k_anonymity", "k": 5},
        {"model": "l_diversity", "attribute": "diagnosis", "l": 2},
    ],
    "stream": {"max_delay": {"time": 5.0, "records": 2000}},
}


def policy(**changes: Any) -> stream_anon.Policy:
    """Return the policy, with some of its words changed."""
    return stream_anon.Policy.model_validate(POLICY | changes)


def visits(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return so many visits of people who do not exist."""
    chance = random.Random(seed)  # noqa: S311 - nothing here is secret
    return [
        {
            "patient": f"P{chance.randrange(count)}",
            "age": min(99, int(chance.gauss(50, 20)) % 100),
            "zip": f"021{chance.randrange(40):02}",
            "diagnosis": chance.choice(["flu", "asthma", "ulcer", "gastritis"]),
        }
        for _ in range(count)
    ]
