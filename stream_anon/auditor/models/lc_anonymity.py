"""(l, c)-anonymity: enough values, none too frequent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stream_anon.auditor.models.base import (
    Bools,
    Built,
    Columns,
    Counts,
    ValueModel,
    looked_up,
    read_table,
    too_frequent,
)


@dataclass(frozen=True, slots=True)
class LCAnonymity(ValueModel):
    """Every group has as many values as its most demanding value requires, none with a share above c."""

    code: ClassVar[str] = "lc_anonymity"
    meaning: ClassVar[str] = "too few sensitive values, or one with a share above c"
    attribute: str
    l: int  # noqa: E741 - the literature's name
    c: float
    demands: dict[int, int]

    def failing(self, counts: Counts) -> Bools:
        """Return the groups with too few values, or one too frequent whichever rows repeat a person's value."""
        wanted = np.maximum.reduceat(looked_up(counts.value, self.demands, self.l), counts.starts)
        return np.asarray((counts.distinct < wanted) | too_frequent(counts, np.full(len(counts.value), self.c)))

    @classmethod
    def read(cls, spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
        """Read the model from its entry in the policy."""
        given = spec.get("values") or {}
        if isinstance(given, str):
            given = {value: {"l": int(float(cells[0]))} for value, cells in read_table(folder / given).items()}
        column, least = columns[spec["attribute"]], int(spec.get("l", 2))
        demands = {column.code(value): max(least, int(demand["l"])) for value, demand in given.items()}
        return cls(column.name, least, spec["c"], demands), ""

    def promise(self, who: str) -> str:
        """Return in words what it promises of every group."""
        return f"{self.attribute}: at least {self.l:,} values, none with a share above {self.c:g}"

    @property
    def allowed(self) -> float | None:
        """The largest share that one value may have."""
        return self.c
