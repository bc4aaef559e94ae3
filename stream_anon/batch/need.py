"""What a group must satisfy, laid out for compiled loops: people, different values, shares. Other models are asked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import inner
from stream_anon.core.privacy import AlphaK, DistinctL, KAnonymity, LCAnonymity, PrivacyModel
from stream_anon.core.privacy.base import SLACK

NO_BOUND = 2.0
"""A share no value reaches."""


class Need(NamedTuple):
    """Requirement m concerns `value[m, row]`, a code that no other requirement uses.

    A group needs `k` people, and per requirement as many different values as `least[m]` and the `demand` of each value
    present say, none held by more than `bound` of the people. `person` and `pair` (person and value together) are empty
    if every row is another person's. `seen`, `count` and `stamp` are marks of the last question asked: a question costs
    no clearing.
    """

    k: int
    rows: int
    person: Ints
    pair: Ints
    value: Ints
    least: Ints
    demand: Ints
    bound: Floats
    seen: Ints
    count: Ints
    stamp: Ints


def need_of(rows: Batch, models: tuple[PrivacyModel, ...]) -> tuple[Need, list[PrivacyModel]]:
    """The part of the requirements that loops can count, and the models that must be asked beside it."""
    k, asked = 1, []
    counted: list[tuple[int, int, dict[int, int], dict[int, float] | None]] = []
    for model in models:
        match model:
            case KAnonymity():
                k = max(k, model.k)
            case DistinctL():
                counted.append((model.column, model.l, {}, None))
            case LCAnonymity():
                codes = np.unique(rows.sensitive[:, model.column]).tolist()
                demands = {code: model.demands.get(code, model.l) for code in codes}
                # l is the demand of values that name none: a group of modest ones needs no more than they ask for
                counted.append((model.column, 1, demands, dict.fromkeys(codes, model.c)))
            case AlphaK():
                k = max(k, model.k)
                codes = np.unique(rows.sensitive[:, model.column]).tolist()
                alphas = [model.alpha_of(code) for code in codes]
                bounds = {code: -1.0 if a is None else a for code, a in zip(codes, alphas, strict=True)}
                counted.append((model.column, 1, {}, bounds))
            case _:
                asked.append(model)
    n = len(rows)
    people, person = np.unique(rows.subject, return_inverse=True)
    alone = len(people) == n
    values, pairs = np.empty((len(counted), n), dtype=np.int64), np.empty((len(counted), 0 if alone else n), np.int64)
    demand: list[Ints] = []
    bound: list[Floats] = []
    values_used, pairs_used = 0, 0
    for m, (column, _, demands, shares) in enumerate(counted):
        found, code = np.unique(rows.sensitive[:, column], return_inverse=True)
        values[m] = code + values_used
        demand.append(np.array([demands.get(int(v), 0) for v in found], dtype=np.int64))
        limits = [NO_BOUND if shares is None else shares[int(v)] for v in found]
        bound.append(np.array(limits, dtype=np.float64))
        values_used += len(found)
        if not alone:
            held, pair = np.unique(values[m] * np.int64(len(people)) + person, return_inverse=True)
            pairs[m] = pair + len(people) + pairs_used
            pairs_used += len(held)
    empty = np.empty(0, dtype=np.int64)
    marks = (0 if alone else len(people)) + pairs_used + values_used
    if not alone and len(counted):
        values += len(people) + pairs_used  # one array of marks: people, then pairs, then values
    base = 0 if alone or not counted else len(people) + pairs_used
    padding = np.zeros(base, dtype=np.int64)
    least = np.array([l for _, l, _, _ in counted], dtype=np.int64)
    fewest = max([k, *least.tolist()])
    return (
        Need(
            k=k,
            rows=fewest,
            person=empty if alone else person.astype(np.int64),
            pair=pairs,
            value=values,
            least=least,
            demand=np.concatenate([padding, *demand]).astype(np.int64),
            bound=np.concatenate([padding.astype(np.float64), *bound]),
            seen=np.zeros(max(marks, 1), dtype=np.int64),
            count=np.zeros(max(marks, 1), dtype=np.int64),
            stamp=np.zeros(1, dtype=np.int64),
        ),
        asked,
    )


@inner
def satisfied(need: Need, rows: Ints, start: int, stop: int) -> bool:
    """Whether `rows[start:stop]` together have all that is counted."""
    if stop - start < need.rows:
        return False
    many = len(need.person) > 0
    if not many and need.value.shape[0] == 0:
        return True
    need.stamp[0] += 1
    stamp = need.stamp[0]
    people = stop - start
    if many:
        people = 0
        for r in range(start, stop):
            who = need.person[rows[r]]
            if need.seen[who] != stamp:
                need.seen[who] = stamp
                people += 1
        if people < need.k:
            return False
    for m in range(need.value.shape[0]):
        different, wanted = 0, need.least[m]
        for r in range(start, stop):
            if many:
                pair = need.pair[m, rows[r]]
                if need.seen[pair] == stamp:
                    continue
                need.seen[pair] = stamp
            value = need.value[m, rows[r]]
            if need.seen[value] != stamp:
                need.seen[value] = stamp
                need.count[value] = 0
                different += 1
                wanted = max(wanted, need.demand[value])
            need.count[value] += 1
        if different < wanted:
            return False
        for r in range(start, stop):
            value = need.value[m, rows[r]]
            if need.count[value] > need.bound[value] * people + SLACK * people:
                return False
    return True
