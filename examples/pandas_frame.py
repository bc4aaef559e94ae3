"""A pandas frame in, a pandas frame out."""

from __future__ import annotations

import pandas
from visits import policy, visits

import stream_anon

frame = pandas.DataFrame(visits(500))
anonymous = stream_anon.anonymize(frame, policy(), algorithm="mondrian").table
print(anonymous[["age", "zip", "diagnosis"]].head())
assert isinstance(anonymous, pandas.DataFrame)
assert "patient" not in anonymous.columns
