"""What an audit came to, as plain data: the same for the terminal, for `--json` and for reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stream_anon.audit.against import Compared
from stream_anon.audit.findings import Finding


@dataclass(frozen=True, slots=True)
class SensitiveMeasure:
    """The worst group of one sensitive attribute.

    `effective` is e to the power of the least entropy; `share` the largest share of people with one value, at the
    least; `distance` the largest distance from the reference of t-closeness, None if the policy asks for none.
    """

    distinct: int
    effective: float
    share: float
    distance: float | None


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Counts, measures and findings of one audit.

    `open` records were waiting for the rest of their group when the audit of a topic ended. `undecided` groups have
    more rows than people, so that a model that counts people's values could only be judged in their favour.
    `sizes` maps a group's number of records to how many groups have it.
    """

    source: str
    policy: str | None
    records: int
    groups: int
    classes: int
    fewest_rows: int
    fewest_people: int
    required_people: int | None
    smallest_class: int
    loss: float | None
    sizes: dict[int, int]
    sensitive: dict[str, SensitiveMeasure]
    versions: dict[str, int]
    repeated: int
    open: int
    undecided: int
    notes: tuple[str, ...]
    raw: Compared | None
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"passed": self.passed, **asdict(self)}
