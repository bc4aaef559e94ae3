"""k-anonymity: at least k people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stream_anon.auditor.models.base import Bools, Built, Columns, Ints, PeopleModel


@dataclass(frozen=True, slots=True)
class KAnonymity(PeopleModel):
    """Every group has at least k people."""

    code: ClassVar[str] = "k_anonymity"
    meaning: ClassVar[str] = "fewer people (or records, without a subject) than k"
    k: int

    def failing(self, people: Ints) -> Bools:
        """Return the groups with fewer than k people."""
        return np.asarray(people < self.k)

    @classmethod
    def read(cls, spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
        """Read the model from its entry in the policy."""
        return cls(spec["k"]), ""

    def promise(self, who: str) -> str:
        """Return in words what it promises of every group."""
        return f"every group has at least {self.k:,} {who}"

    @property
    def people(self) -> int:
        """The number of people that it asks for in a group."""
        return self.k
