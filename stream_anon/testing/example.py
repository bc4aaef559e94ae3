"""The smallest table that an algorithm can be shown at work on, for the examples in the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.errors import Diagnostic, Problem
from stream_anon.policy import Policy


class _Inline:
    """A policy that was never in a file."""

    folder = Path()

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def diagnostics(self, found: Sequence[Problem]) -> list[Diagnostic]:
        """Return the problems, without a place."""
        return [Diagnostic(problem.code, problem.message, "(inline)", hint=problem.hint) for problem in found]


def ages(
    values: Sequence[int], illnesses: Sequence[str] = (), guards: Sequence[str] = (), k: int = 2, **model: object
) -> tuple[Batch, Schema]:
    """Ages as the one quasi-identifier, illnesses as the sensitive attribute, k-anonymity and one more model."""
    tree = {"any": {"stomach": ["ulcer", "gastritis"], "lung": ["flu", "cough", "asthma"]}}
    privacy: list[dict[str, object]] = [{"model": "k_anonymity", "k": k}]
    policy = Policy.model_validate(
        {
            "version": 1,
            "name": "example",
            "secret": "only an example, and long enough to pass",
            "attributes": {
                "age": {
                    "role": "quasi_identifier",
                    "type": "integer",
                    "hierarchy": {"kind": "interval", "range": [0, 100], "snap": "none"},
                },
                "illness": {
                    "role": "sensitive",
                    "hierarchy": {"kind": "tree", "tree": tree},
                    "guarding_node": "guard",
                },
            },
            "privacy": privacy + ([{**model, "attribute": "illness"}] if model else []),
        }
    )
    n = len(values)
    schema = Schema.compile(_Inline(policy))
    records = [
        {
            "age": age,
            "illness": illnesses[i] if illnesses else "flu",
            "guard": guards[i] if guards else "",
        }
        for i, age in enumerate(values)
    ]
    ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
    return Encoder(schema).encode(records, ref, np.zeros(n)).batch, schema
