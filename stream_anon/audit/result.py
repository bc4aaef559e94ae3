"""What an audit came to, as plain data: the same for the terminal, for `--json` and for reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stream_anon.audit.against import Compared
from stream_anon.audit.chance import Chance
from stream_anon.audit.checks import Check
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
    `sizes` maps a group's number of records to how many groups have it, `people` does so for its people. `losses` are
    of those attributes whose labels tell it. `chance` is that to tell whose a record is, within its group.
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
    max_delay: float | None
    loss: float | None
    losses: dict[str, float]
    sizes: dict[int, int]
    people: dict[int, int]
    chance: Chance
    sensitive: dict[str, SensitiveMeasure]
    versions: dict[str, int]
    repeated: int
    open: int
    undecided: int
    notes: tuple[str, ...]
    raw: Compared | None
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        told = [{"promise": c.promise, "kept": c.kept, "codes": c.codes, "attribute": c.attribute} for c in self.checks]
        return {"passed": self.passed, **asdict(self), "checks": told}
