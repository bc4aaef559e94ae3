"""Guarding nodes: nobody is placed under the node they guard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from stream_anon.auditor.models.base import Built, Columns, Model


@dataclass(frozen=True, slots=True)
class Guarding(Model):
    """Nobody's value is placed under the node they guard with a chance above p; judged with the raw table only."""

    code: ClassVar[str] = "guarding_node"
    meaning: ClassVar[str] = "somebody's value can be placed under the node they guard with a chance above p"
    raises: ClassVar[bool] = True
    only_raw: ClassVar[str] = "only the raw table shows what people guard"
    attribute: str
    p: float

    @classmethod
    def read(cls, spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
        """Read the model from its entry in the policy."""
        return cls(spec["attribute"], spec["p"]), ""

    def promise(self, who: str) -> str:
        """Return in words what it promises of every group."""
        return f"{self.attribute}: nobody's guard is breached with a chance above {self.p:g}"

    @property
    def column(self) -> str:
        """The sensitive attribute it looks at."""
        return self.attribute
