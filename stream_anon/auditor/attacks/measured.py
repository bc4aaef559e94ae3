"""What one attack came to that is no before and after: a share of tries, and what guessing alone would achieve."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measured:
    """The share of tries on which an attack succeeded; `baseline` is what a guess without it achieves, if any."""

    name: str
    attribute: str
    meaning: str
    tried: int
    share: float
    baseline: float | None = None
