"""The requirements of a policy, laid out for compiled loops; models that no loop can count are judged separately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.privacy import (
    AlphaK,
    DistinctL,
    EntropyL,
    KAnonymity,
    LCAnonymity,
    PrivacyModel,
    RecursiveL,
    TCloseness,
)
from stream_anon.core.privacy.base import SensitiveModel

NO_BOUND, NEVER = 2.0, -1.0
"""A share that no value exceeds, and one that every value does."""

SHARES, ENTROPY, RECURSIVE, EQUAL, ORDERED = range(5)
"""How a requirement judges the counts of its values."""


class CompiledRequirements(NamedTuple):
    """The countable requirements: a group needs `k` people, and the counts of its values must satisfy each requirement.

    Requirement m concerns the codes `value[m, row]`, from `first[m]` to `first[m + 1]`, which no other one uses. It
    asks for `least[m]` different ones, and for as many as the `demand` of each code present says. `share` is per code
    the largest share of the people that may have it, or its share in the whole table for t-closeness. `limit` is c, or
    t. `person` and `pair` (person and value together) are empty if every row is another person's. `seen`, `tally` and
    `stamp` are marks of the last question: a question costs no clearing.
    """

    k: int
    rows: int
    person: Ints
    pair: Ints
    value: Ints
    first: Ints
    kind: Ints
    least: Ints
    limit: Floats
    demand: Ints
    share: Floats
    seen: Ints
    tally: Ints
    stamp: Ints


@dataclass(frozen=True, slots=True)
class _Rule:
    """One requirement before its values are numbered."""

    column: int
    kind: int = SHARES
    least: int = 1
    limit: float = 0.0
    demand: Callable[[int], int] = lambda code: 0
    share: Callable[[int], float] = lambda code: NO_BOUND


def need_of(rows: Batch, models: tuple[PrivacyModel, ...]) -> tuple[CompiledRequirements, list[PrivacyModel]]:
    """Return the part of the requirements that loops can count, and the models that must be judged separately."""
    rules = [(model, _rule(model)) for model in models if not isinstance(model, KAnonymity)]
    counted = [rule for _, rule in rules if rule is not None]
    k = max([1, *(model.k for model in models if isinstance(model, KAnonymity | AlphaK))])
    n, m = len(rows), len(counted)
    people, person = np.unique(rows.subject, return_inverse=True)
    alone = len(people) == n
    value, pair = np.empty((m, n), dtype=np.int64), np.empty((m, 0 if alone else n), dtype=np.int64)
    demand, share, first, pairs = [], [], [0], 0
    for i, rule in enumerate(counted):
        found, code = np.unique(rows.sensitive[:, rule.column], return_inverse=True)
        value[i] = code + first[-1]
        demand += [rule.demand(int(v)) for v in found]
        share += [rule.share(int(v)) for v in found]
        first.append(first[-1] + len(found))
        if not alone:
            held, which = np.unique(value[i] * np.int64(len(people)) + person, return_inverse=True)
            pair[i] = which + pairs
            pairs += len(held)
    least = np.array([rule.least for rule in counted], dtype=np.int64)
    # One array of marks: values first, then pairs, then people.
    marks = first[-1] + pairs + (0 if alone else len(people))
    need = CompiledRequirements(
        k=k,
        rows=max([k, *least.tolist()]),
        person=np.empty(0, dtype=np.int64) if alone else person.astype(np.int64) + first[-1] + pairs,
        pair=pair + first[-1],
        value=value,
        first=np.array(first, dtype=np.int64),
        kind=np.array([rule.kind for rule in counted], dtype=np.int64),
        least=least,
        limit=np.array([rule.limit for rule in counted], dtype=np.float64),
        demand=np.array(demand, dtype=np.int64),
        share=np.array(share, dtype=np.float64),
        seen=np.zeros(max(marks, 1), dtype=np.int64),
        tally=np.zeros(max(first[-1], 1), dtype=np.int64),
        stamp=np.zeros(1, dtype=np.int64),
    )
    return need, [model for model, rule in rules if rule is None]


def _rule(model: PrivacyModel) -> _Rule | None:
    if isinstance(model, SensitiveModel) and model.missing is not None:
        return None  # loops would count what is not there as one more value
    match model:
        case DistinctL():
            return _Rule(model.column, least=model.l)
        case EntropyL():
            return _Rule(model.column, ENTROPY, model.l)
        case RecursiveL():
            return _Rule(model.column, RECURSIVE, model.l, model.c)
        case LCAnonymity():
            demands, otherwise, c = model.demands, model.l, model.c
            return _Rule(model.column, demand=lambda code: demands.get(code, otherwise), share=lambda code: c)
        case AlphaK():
            alpha_of = model.alpha_of
            return _Rule(model.column, share=lambda code: NEVER if (a := alpha_of(code)) is None else a)
        case TCloseness():
            return _closeness(model)
    return None


def _closeness(model: TCloseness) -> _Rule | None:
    known = model.reference()
    if known is None:
        return _Rule(model.column, limit=0.0, share=lambda code: NEVER)
    codes, shares = known
    if model.ordered:
        return None  # values that no row has lie between those that some have: the model itself must be asked
    whole = dict(zip(codes.tolist(), shares.tolist(), strict=True))
    return _Rule(model.column, EQUAL, limit=model.t, share=lambda code: whole.get(code, NEVER))
