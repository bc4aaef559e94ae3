"""The result of an attack without a before and after: its success rate and what guessing alone would achieve."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """The share of tries on which an attack succeeded; `baseline` is what guessing without it achieves, if known."""

    name: str
    attribute: str
    meaning: str
    tried: int
    share: float
    baseline: float | None = None
