"""Rows are put into an order that does not depend on the one they came in; no Spark is needed for this."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import stream_anon
from stream_anon.core.encode import Encoder
from stream_anon.core.schema import Schema
from stream_anon.spark.own_order import in_own_order

POLICY: dict[str, Any] = {
    "version": 1,
    "name": "people",
    "secret": "a-secret-that-is-long-enough-for-a-test",
    "attributes": {
        "patient": {"role": "identifier"},
        "age": {
            "role": "quasi_identifier",
            "type": "integer",
            "hierarchy": {"kind": "interval", "range": [0, 120], "snap": "none"},
        },
        "illness": {"role": "sensitive"},
        "ward": {"role": "insensitive"},
    },
    "privacy": [{"model": "k_anonymity", "k": 4}],
}


@pytest.mark.parametrize("subject", [{"subject": "patient"}, {}], ids=["people", "no subject"])
def test_the_order_is_that_of_the_rows(subject: dict[str, str]) -> None:
    """Also of rows of which only what is published unchanged differs, and of those that are equal."""
    schema = Schema.of(stream_anon.Policy.model_validate(POLICY | subject))
    random = np.random.default_rng(1)
    records = [
        {"patient": f"p{i % 9}", "age": int(random.integers(20, 25)), "illness": f"i{i % 2}", "ward": i % 5}
        for i in range(200)
    ]

    def ordered(order: Any) -> list[Any]:
        some = [json.dumps(records[i]).encode() for i in order]
        ref = np.stack([np.zeros(len(some), dtype=np.int64), np.arange(len(some))], axis=1)
        rows = in_own_order(Encoder(schema, stable_subjects=True).encode(some, ref, np.zeros(len(some))).batch, schema)
        people = rows.subject.tolist() if subject else None
        return [rows.qi.tolist(), rows.sensitive.tolist(), rows.values.tolist(), people]

    assert ordered(range(200)) == ordered(random.permutation(200)) == ordered(range(199, -1, -1))
