"""A privacy model of one's own: settings, judgement, and the contract it must keep to."""

from __future__ import annotations

from typing import Literal

import numpy as np
from visits import policy, visits

import stream_anon
from stream_anon.core.privacy import MODELS, ColumnModelSettings, SensitiveModel
from stream_anon.errors import Problem
from stream_anon.grammar.fields import Share
from stream_anon.testing import check_model
from stream_anon.testing.checks.models import holders_of


class RareValues(SensitiveModel):
    """No value is held by more than a share of the people."""

    name = "rare_values"

    def __init__(self, column, most):
        super().__init__(column)
        self.most = most

    def judge(self, values, counts, people):
        """Return how many people have a too frequent value, beyond what is allowed: 0 for a safe group."""
        return float(np.maximum(counts - self.most * max(people, 1) - 1e-9, 0).sum())


class RareValuesSettings(ColumnModelSettings):
    """No value has a share above `most` in a group."""

    model: Literal["rare_values"]
    most: Share
    forms = (RareValues,)

    def rules(self, attribute):
        """Refuse what would protect nothing; `stream-anon check` shows the place in the policy."""
        if self.most == 1:
            yield Problem(("most",), "no-limit", "every group satisfies a share of 1", "a smaller share")

    def build(self, place):
        """Return the model for the column of the attribute."""
        return RareValues(place.index, self.most)


def definition(rows):
    """Say the same plainly, of (person, value) pairs: what the check holds the model against."""
    people = len({person for person, _ in rows})
    return max(map(len, holders_of(rows).values())) / people <= 0.5 + 1e-9


check_model(RareValuesSettings(model="rare_values", attribute="illness", most=0.5), definition)

MODELS.add(RareValuesSettings)  # for this program; installed: an entry point of the group stream_anon.privacy_models
rules = [{"model": "k_anonymity", "k": 5}, {"model": "rare_values", "attribute": "diagnosis", "most": 0.5}]
result = stream_anon.anonymize(visits(400), policy(privacy=rules), algorithm="mondrian")
largest = max(
    max(np.unique([record["diagnosis"] for record in group.records()], return_counts=True)[1]) / group.people
    for group in result.groups
)
print(f"{result.published} rows in {len(result.groups)} groups, no value with a share above {largest:.0%}")
assert result.published > 300
