"""Compile the kernels of a policy, or load them from disk, before a clock runs; publishes nothing."""

from __future__ import annotations

import gc
from copy import deepcopy
from dataclasses import replace

import numpy as np

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.hierarchy import Hierarchy, Ints
from stream_anon.core.privacy import EntropyL, KAnonymity, Requirements
from stream_anon.core.schema import Schema
from stream_anon.policy.settings import MaxDelay
from stream_anon.stream import build

_ROWS, _AT_ONCE, _FEW = 61, 6, 3
_COMMON = 0.4
"""The share of one sensitive value among made-up rows."""
_WIDEST = 1_000
"""Positions that made-up rows are spread over: few enough for groups to be found."""


def warm_up(schema: Schema) -> None:
    """Run made-up rows through an engine of this policy, under its own models and under easy ones.

    Which code is compiled depends on the kinds of the arrays: on the algorithm, the columns and the models, not on
    values. Made-up rows may satisfy no model, so that none would leave: easy ones, of which one counts and one weighs
    shares, see to the rest of the way. What was loaded by then stays for good: the garbage collector need not look
    through it again and again.
    """
    bound = MaxDelay(time=1.0, records=_ROWS // 3)
    stream = schema.policy.stream.model_copy(update={"max_delay": bound})
    policy = schema.policy.model_copy(update={"stream": stream})
    easy = [Requirements([KAnonymity(_FEW)])]
    easy += [Requirements([KAnonymity(_FEW), EntropyL(0, 2)])] if schema.sensitive else []
    rows = _rows(schema)
    for requirements in (deepcopy(schema.requirements), *easy):
        engine = build(replace(schema, policy=policy, requirements=requirements))
        for start in range(0, _ROWS, _AT_ONCE):
            engine.push(rows.take(slice(start, start + _AT_ONCE)), start / 8)  # time enough for deadlines to pass
        engine.tick(_ROWS / 8)
        engine.flush()
    gc.collect()
    gc.freeze()


def _rows(schema: Schema) -> Batch:
    chance, n = np.random.default_rng(1), _ROWS

    def codes(hierarchy: Hierarchy | None) -> Ints:
        low = getattr(hierarchy, "lowest", 0)
        high = min(getattr(hierarchy, "top", 10), low + _WIDEST)
        return chance.integers(low, max(high, low + 1), n)

    qi = np.stack([codes(column.hierarchy) for column in schema.quasi], axis=1)
    shape = n, len(schema.sensitive)
    sensitive = np.empty(shape, dtype=np.int64)
    for s, column in enumerate(schema.sensitive):
        sensitive[:, s] = codes(column.hierarchy)
        sensitive[chance.random(n) < _COMMON, s] = sensitive[0, s]  # so that the first group found may not do
    ref = np.stack([np.zeros(n, dtype=np.int64), np.arange(n)], axis=1)
    return Batch(
        qi,
        sensitive,
        np.full(shape, NO_GUARD, dtype=np.int64),  # guards that nobody can satisfy would be tried for minutes
        np.zeros(shape, dtype=np.int64),
        chance.integers(0, n // 2, n),  # some come more than once, and are left over
        np.arange(n) // _AT_ONCE * _AT_ONCE / 8,
        ref,
        np.full(n, UNNUMBERED, dtype=np.int64),
        np.full((n, len(schema.published)), None, dtype=object),
    )
