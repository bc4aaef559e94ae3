"""The list of checks an audit made, one promise per line; what could not be judged is not listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stream_anon.auditor.findings import Finding
from stream_anon.auditor.policy import Rules


@dataclass(frozen=True, slots=True)
class Check:
    """A promise, the codes of findings that would break it, and which of them were found."""

    promise: str
    codes: tuple[str, ...]
    attribute: str = ""
    broken: tuple[Finding, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether no finding breaks the promise."""
        return not self.broken


_ALWAYS = (
    Check("every record can be read and names its group", ("not-readable", "envelope")),
    Check("every group is complete, each of its records is there once", ("size", "row-twice", "rows", "subjects")),
)
_WITH_POLICY = (
    Check("all records were made under this policy", ("policy",)),
    Check(
        "no identifier, no undeclared field, none missing or twice, none with others inside",
        ("undeclared-field", "identifier-published", "duplicate-field", "missing-field", "compound-value"),
    ),
    Check(
        "quasi-identifiers are generalized along their hierarchies",
        ("exact-value", "outside-hierarchy", "unknown-value"),
    ),
    Check("the records of a group look the same", ("two-generalizations",)),
    Check("the loss is what was declared", ("loss",)),
)
_OF_CHANGES = (Check("changed fields have the form that the policy says", ("field-form",)),)
_OF_CHANGES_WITH_RAW = (
    Check("no token is a raw value, each person's dates moved alike and within the bound", ("raw-value", "shift")),
)
_WITH_RAW = (Check("every record is made of one raw row, no raw row of two records", ("not-in-raw", "more-than-raw")),)
_OF_PEOPLE = (Check("groups hold as many people as they declare", ("people",)),)
_OF_TOPICS = (Check("keys, headers and times of records reveal nothing more", ("key", "header", "timestamp")),)


def checks(rules: Rules | None, raw: bool, topic: bool, findings: Sequence[Finding]) -> tuple[Check, ...]:
    """Return every check that was made, the policy's models first."""
    made = [*(_models(rules, raw) if rules else ()), *_ALWAYS, *(_WITH_POLICY if rules else ())]
    made += [*(_WITH_RAW if raw else ()), *(_OF_PEOPLE if raw and rules and rules.subject else ())]
    if rules and rules.changes:
        made += [*_OF_CHANGES, *(_OF_CHANGES_WITH_RAW if raw else ())]
    made += [*(_OF_TOPICS if topic else ())]
    return tuple(
        Check(check.promise, check.codes, check.attribute, tuple(f for f in findings if _breaks(f, check)))
        for check in made
    )


def _breaks(finding: Finding, check: Check) -> bool:
    mine = not check.attribute or not finding.columns or check.attribute in finding.columns
    return finding.code in check.codes and mine


def _models(rules: Rules, raw: bool) -> Iterator[Check]:
    """Return one check for each kind of model and attribute, as their findings cannot be told apart."""
    wanted: dict[tuple[str, str], list[str]] = {}
    who = "people" if rules.subject else "records"
    for model in rules.models:
        if raw or not model.only_raw:
            wanted.setdefault((model.code, model.column), []).append(model.promise(who))
    for (code, attribute), promises in wanted.items():
        yield Check("; ".join(promises), (code,), attribute)
