"""l-diversity: at least l well-represented values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stream_anon.auditor.models.base import SLACK, Bools, Built, Columns, Counts, Ints, ValueModel


@dataclass(frozen=True, slots=True)
class LDiversity(ValueModel):
    """Every group has at least l well-represented values: distinct, by entropy, or recursive (c, l)."""

    code: ClassVar[str] = "l_diversity"
    meaning: ClassVar[str] = "the sensitive values are not l-diverse"
    attribute: str
    l: float  # noqa: E741 - the literature's name; whole unless by entropy
    variant: str
    c: float

    def failing(self, counts: Counts) -> Bools:
        """Return the groups that are not diverse, whichever rows repeat a person's value."""
        if self.variant == "distinct":
            return np.asarray(counts.distinct < self.l)
        suspect = self._recursive(counts) if self.variant == "recursive" else counts.effective < self.l - SLACK
        for g in np.flatnonzero(suspect & (counts.surplus > 0)):
            suspect[g] = self._alone(counts.levelled(int(g)))
        return np.asarray(suspect)

    def _recursive(self, counts: Counts) -> Bools:
        order = np.lexsort((-counts.number, counts.group))
        number = counts.number[order]
        rank = np.arange(len(number)) - counts.starts[counts.group]
        tail = counts.sum(np.where(rank >= int(self.l) - 1, number, 0))
        return np.asarray(number[counts.starts] >= self.c * tail - SLACK)

    def _alone(self, counts: Ints) -> bool:
        """Tell whether the counts of one group, most frequent first, fail."""
        if self.variant == "recursive":
            return bool(counts[0] >= self.c * counts[int(self.l) - 1 :].sum() - SLACK)
        share = counts / counts.sum()
        return bool(np.exp(-(share * np.log(share)).sum()) < self.l - SLACK)

    @classmethod
    def read(cls, spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
        """Read the model from its entry in the policy."""
        return cls(spec["attribute"], spec["l"], spec.get("variant", "distinct"), spec.get("c") or 1.0), ""

    def promise(self, who: str) -> str:
        """Return in words what it promises of every group."""
        kind = {"recursive": f" (recursive, c = {self.c:g})", "entropy": " (entropy)"}.get(self.variant, "")
        return f"{self.attribute}: at least {self.l:,g} values in every group{kind}"

    @property
    def by_shares(self) -> bool:
        """Whether it matters how many people have a value."""
        return self.variant != "distinct"
