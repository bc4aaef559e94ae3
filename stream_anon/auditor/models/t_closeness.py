"""t-closeness: the values of a group are distributed like those of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stream_anon.auditor.models.base import (
    SLACK,
    Bools,
    Built,
    Columns,
    Counts,
    Floats,
    ValueModel,
    looked_up,
    read_table,
)


@dataclass(frozen=True, slots=True)
class TCloseness(ValueModel):
    """The distribution of values in every group is within t of the reference, whose values are listed in order."""

    code: ClassVar[str] = "t_closeness"
    meaning: ClassVar[str] = "the distribution of sensitive values is farther than t from the reference"
    attribute: str
    t: float
    ordered: bool
    reference: dict[int, float]

    def distances(self, counts: Counts) -> Floats:
        """Return how far each group is from the reference, by rows; 1 if it has a value unknown to the reference."""
        place = looked_up(counts.value, {code: i for i, code in enumerate(self.reference)}, -1).astype(np.int64)
        unknown = np.unique(counts.group[(place < 0) & (counts.number > 0)])
        shares = np.zeros((len(counts.starts), len(self.reference)))
        known = place >= 0
        shares[counts.group[known], place[known]] = (counts.number / np.maximum(counts.rows[counts.group], 1))[known]
        difference = shares - np.array(list(self.reference.values()))
        if self.ordered:
            distance = np.abs(np.cumsum(difference, axis=1)[:, :-1]).sum(axis=1) / max(len(self.reference) - 1, 1)
        else:
            distance = np.abs(difference).sum(axis=1) / 2
        distance[unknown] = 1.0
        return np.asarray(distance)

    def failing(self, counts: Counts) -> Bools:
        """Return the groups that are too far away, except those with more rows than people: they cannot be judged."""
        return np.asarray((self.distances(counts) > self.t + SLACK) & (counts.surplus <= 0))

    @classmethod
    def read(cls, spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
        """Read the model from its entry in the policy."""
        given, column = spec.get("reference"), columns[spec["attribute"]]
        if given is None:
            return None, f"t_closeness on {column.name}: its reference is a running estimate"
        if isinstance(given, str):
            given = {value: float(cells[0]) for value, cells in read_table(folder / given).items()}
        order = list(given)
        if column.scale is not None:
            order.sort(key=column.scale.place)
        total = sum(given.values())
        reference = {column.code(value): given[value] / total for value in order}
        return cls(column.name, spec["t"], spec.get("distance") == "ordered", reference), ""

    def promise(self, who: str) -> str:
        """Return in words what it promises of every group."""
        return f"{self.attribute}: within {self.t:g} of the reference in every group"
