"""What every stream algorithm is checked with: algorithms, policies, rows, bounds."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from stream_anon.core.schema import Schema
from stream_anon.policy.settings import STREAM_ALGORITHMS, MaxDelay, StreamSettings
from stream_anon.testing.contract.definitions import Row
from stream_anon.testing.contract.policies import GROWING, LEARNING, POLICIES, WAGES, row_of, schema_under

__all__ = ["GROWING", "LEARNING", "POLICIES", "WAGES", "row_of"]

ALGORITHMS: dict[str, Any] = {name: STREAM_ALGORITHMS[name] for name in STREAM_ALGORITHMS.words}
"""Every algorithm a policy can name: a new one is checked without being listed here."""

VARIANTS: list[tuple[str, str, dict[str, Any]]] = [
    # remark, algorithm, its settings
    ("never impatient", "cail", {"patience": 0.9}),
    ("a threshold nothing exceeds", "cail", {"threshold": 9.0}),
    ("a threshold only equal rows keep", "cail", {"threshold": 0.0}),
    ("standing clusters", "cail", {"clusters": "standing"}),
    ("standing, a fixed threshold", "cail", {"clusters": "standing", "threshold": 0.4}),
    ("standing, everything joins", "cail", {"clusters": "standing", "threshold": 9.0}),
    ("standing, merging", "cail", {"clusters": "standing", "completion": "merge", "memory": 2}),
    ("standing, merging within a threshold", "cail", {"clusters": "standing", "completion": "merge", "threshold": 0.3}),
    ("standing, one cluster", "cail", {"clusters": "standing", "max_clusters": 1, "completion": "merge"}),
    ("standing, two clusters", "cail", {"clusters": "standing", "max_clusters": 2}),
    ("one cluster", "castle", {"max_clusters": 1}),
    ("three clusters, short memory", "castle", {"max_clusters": 3, "memory": 1}),
]


def schema_of(policy: str, algorithm: str, stream: StreamSettings, settings: Row | None = None) -> Schema:
    """A schema that has learned nothing yet, for any algorithm and bound."""
    return schema_under(policy, ALGORITHMS[algorithm](name=algorithm, **(settings or {})), stream)


def rows_of_length(low: int, high: int) -> st.SearchStrategy[list[Row]]:
    """Streams of so many rows."""
    return st.lists(st.integers(0, 2**48 - 1).map(row_of), min_size=low, max_size=high)


bounds = st.one_of(
    st.builds(MaxDelay, records=st.integers(1, 14)),
    st.builds(MaxDelay, time=st.integers(1, 12).map(float)),
    st.builds(MaxDelay, records=st.integers(1, 14), time=st.integers(1, 12).map(float)),
)
counts_only = st.builds(MaxDelay, records=st.integers(1, 14))
deadlines = st.sampled_from(["suppress", "hold"])
sizes = st.lists(st.integers(1, 9), min_size=1, max_size=6)
gaps = st.lists(st.integers(0, 4), min_size=1, max_size=6)

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
every_policy = pytest.mark.parametrize("policy", POLICIES)


def few(examples: int) -> settings:
    """As many examples as the time for all tests allows; STREAM_ANON_EXAMPLES=20 tries twenty times as many."""
    times = int(os.environ.get("STREAM_ANON_EXAMPLES", "1"))
    return settings(max_examples=examples * times, deadline=None, suppress_health_check=[HealthCheck.too_slow])
