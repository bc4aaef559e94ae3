"""The result of an audit as plain data: the same for the terminal, for `--json` and for reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stream_anon.auditor.attacks.chance import Chance
from stream_anon.auditor.checks import Check
from stream_anon.auditor.findings import Finding
from stream_anon.auditor.linkage import Linkage
from stream_anon.auditor.raw.against import Compared


@dataclass(frozen=True, slots=True)
class SensitiveMeasure:
    """The measures of the worst group of one sensitive attribute.

    `effective` is e to the power of the least entropy; `share` the largest share of people with one value, at the
    least; `distance` the largest distance from the reference of t-closeness, None if the policy asks for none.
    """

    distinct: int
    effective: float
    share: float
    distance: float | None


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The counts, measures and findings of one audit.

    `open` records were waiting for the rest of their group when the audit of a topic ended. `undecided` groups have
    more rows than people, so that a model that counts people's values could only be judged in their favour.
    `k_counts` is what groups were judged by, people or records; where it is records, everything about people is None:
    it was not judged. `required` is k. `sizes` maps a group's number of records to how many groups have it, `people`
    does so for its people. `linkage` tells of each field with tokens in how many groups one of them is found. `losses`
    are of those attributes whose labels determine it. `chance` is that to identify the person of a record, within its
    group.
    """

    source: str
    policy: str | None
    records: int
    groups: int
    classes: int
    fewest_rows: int
    k_counts: str
    required: int | None
    fewest_people: int | None
    required_people: int | None
    smallest_class: int
    max_delay: float | None
    loss: float | None
    losses: dict[str, float]
    sizes: dict[int, int]
    people: dict[int, int] | None
    chance: Chance | None
    sensitive: dict[str, SensitiveMeasure]
    linkage: dict[str, Linkage]
    versions: dict[str, int]
    repeated: int
    open: int
    undecided: int
    notes: tuple[str, ...]
    raw: Compared | None
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]

    @property
    def fewest(self) -> int:
        """The size of the smallest group, in the unit that `k_counts` names."""
        return self.fewest_rows if self.fewest_people is None else self.fewest_people

    @property
    def verdict(self) -> str:
        """The verdict in words: passed or not, and whether people were judged at all."""
        judged = "passed" if self.passed else "FAILED"
        if self.k_counts == "people":
            return judged
        return f"{judged}; people not judged: no subject is declared, so k counted records"

    @property
    def passed(self) -> bool:
        """Whether the audit found nothing wrong."""
        return not self.findings

    def as_data(self) -> dict[str, Any]:
        """Return the result as plain data for JSON."""
        checks = [
            {"promise": c.promise, "kept": c.kept, "codes": c.codes, "attribute": c.attribute} for c in self.checks
        ]
        return {"passed": self.passed, "verdict": self.verdict, **asdict(self), "checks": checks}
