"""(alpha, k)-anonymity: enough people, no value above its alpha."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stream_anon.auditor.models.base import (
    Bools,
    Built,
    Columns,
    Counts,
    Floats,
    Ints,
    ValueModel,
    looked_up,
    read_table,
    too_frequent,
)


@dataclass(frozen=True, slots=True)
class AlphaK(ValueModel):
    """Every group has at least k people and no value with a share above its alpha."""

    code: ClassVar[str] = "alpha_k"
    meaning: ClassVar[str] = (
        "fewer people (or records, without a subject) than k, or a value with a share above its alpha"
    )
    attribute: str
    k: int
    alphas: dict[int, float]
    default: float

    def failing(self, counts: Counts) -> Bools:
        """Return the groups with fewer than k people or with a value that is too frequent."""
        return np.asarray((counts.people < self.k) | too_frequent(counts, self.bounds(counts.value)))

    def bounds(self, values: Ints) -> Floats:
        """Return the alpha of each value."""
        return looked_up(values, self.alphas, self.default)

    @classmethod
    def read(cls, spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
        """Read the model from its entry in the policy."""
        given, column = spec.get("alpha"), columns[spec["attribute"]]
        if isinstance(given, str):
            given = {value: float(cells[0]) for value, cells in read_table(folder / given).items()}
        if given is None:
            why = f"alpha_k on {column.name}: alpha follows from a running estimate; only k was judged"
            return cls(column.name, spec["k"], {}, 1.0), why
        if isinstance(given, Mapping):
            alphas = {column.code(value): float(alpha) for value, alpha in given.items()}
            return cls(column.name, spec["k"], alphas, float(spec.get("default", 1.0))), ""
        return cls(column.name, spec["k"], {}, float(given)), ""

    def promise(self, who: str) -> str:
        """Return in words what it promises of every group."""
        share = f"{self.default:g}" if not self.alphas else "its alpha"
        return f"{self.attribute}: at least {self.k:,} {who}, no value with a share above {share}"

    @property
    def allowed(self) -> float | None:
        """The largest share that one value may have, if it is the same for all."""
        return self.default if not self.alphas and self.default < 1 else None

    @property
    def people(self) -> int:
        """The number of people that it asks for in a group."""
        return self.k
