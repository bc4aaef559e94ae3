"""The requirements of a policy, laid out for compiled loops; models that no loop can count are judged separately."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.privacy import PrivacyModel, SensitiveModel
from stream_anon.core.privacy.base import all_different
from stream_anon.core.privacy.counting import CountRule


class CompiledRequirements(NamedTuple):
    """The countable requirements: a group needs `k` people, and the counts of its values must satisfy each requirement.

    Requirement m concerns the codes `value[m, row]`, from `first[m]` to `first[m + 1]`, which no other one uses. It
    asks for `least[m]` different ones, and for as many as the `demand` of each code present says. `share` is per code
    the largest share of the people that may have it, or its share in the whole table for t-closeness. `limit` is c, or
    t, or the l of an entropy. `person` and `pair` (person and value together) are empty if every row is another
    person's. `seen`, `tally` and `stamp` are marks of the last question: a question costs no clearing.
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


def need_of(rows: Batch, models: tuple[PrivacyModel, ...]) -> tuple[CompiledRequirements, list[PrivacyModel]]:
    """Return the part of the requirements that loops can count, and the models that must be judged separately."""
    rules = [(model, _rules(model)) for model in models]
    counted = [rule for _, found in rules for rule in found or ()]
    k = max([1, *(model.k for model in models)])
    n, m = len(rows), len(counted)
    alone = all_different(rows.subject)
    people, person = (rows.subject, rows.subject) if alone else np.unique(rows.subject, return_inverse=True)
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
    return need, [model for model, found in rules if found is None]


def _rules(model: PrivacyModel) -> tuple[CountRule, ...] | None:
    if isinstance(model, SensitiveModel) and model.missing is not None:
        return None  # loops would count what is not there as one more value
    return model.counted()
