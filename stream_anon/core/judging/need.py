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

    `code` has a line per requirement with the code of its value in each row; codes belong to one requirement alone. If
    a person has several rows, as many lines follow with codes of person and value together, and one with codes of
    people. `rule` has the kind of each requirement, and how many different codes it asks for; the `demand` of a code
    present may ask for more. `share` is per code the largest share of the people that may have it, or its share in the
    whole table for t-closeness. `limit` is c, or t, or the l of an entropy. `seen` (the number of the last question
    first) and `tally` are marks of the last question: a question costs no clearing.

    Few arrays: each costs compile time in every function that is given them.
    """

    k: int
    rows: int
    code: Ints
    rule: Ints
    limit: Floats
    demand: Ints
    share: Floats
    seen: Ints
    tally: Ints


def need_of(rows: Batch, models: tuple[PrivacyModel, ...]) -> tuple[CompiledRequirements, list[PrivacyModel]]:
    """Return the part of the requirements that loops can count, and the models that must be judged separately."""
    rules = [(model, _rules(model)) for model in models]
    counted = [rule for _, found in rules for rule in found or ()]
    k = max([1, *(model.k for model in models)])
    alone = all_different(rows.subject)
    people, person = (rows.subject, rows.subject) if alone else np.unique(rows.subject, return_inverse=True)
    values: list[Ints] = []
    demand, share = [0], [0.0]  # the first mark is the number of the question
    for rule in counted:
        found, code = np.unique(rows.sensitive[:, rule.column], return_inverse=True)
        values.append(code + len(demand))
        demand += [rule.demand(int(v)) for v in found]
        share += [rule.share(int(v)) for v in found]
    marks, lines = len(demand), values
    if not alone:
        lines = [*values, *(value * np.int64(len(people)) + person for value in values), person]
        for i in range(len(values), len(lines)):
            held, which = np.unique(lines[i], return_inverse=True)
            lines[i] = which + marks
            marks += len(held)
    least = [rule.least for rule in counted]
    need = CompiledRequirements(
        k=k,
        rows=max([k, *least]),
        code=np.array(lines, dtype=np.int64).reshape(len(lines), len(rows)),
        rule=np.array([(rule.kind, rule.least) for rule in counted], dtype=np.int64).reshape(len(counted), 2),
        limit=np.array([rule.limit for rule in counted], dtype=np.float64),
        demand=np.array(demand, dtype=np.int64),
        share=np.array(share, dtype=np.float64),
        seen=np.zeros(marks, dtype=np.int64),
        tally=np.zeros(len(demand), dtype=np.int64),
    )
    return need, [model for model, found in rules if found is None]


def _rules(model: PrivacyModel) -> tuple[CountRule, ...] | None:
    if isinstance(model, SensitiveModel) and model.missing is not None:
        return None  # loops would count what is not there as one more value
    return model.counted()
