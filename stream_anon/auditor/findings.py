"""Everything an audit can find, by code; findings name groups by their ids and never hold a data value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stream_anon.auditor.models import known_models

SHOWN = 10
"""Groups that are named per finding: enough to look into, few enough to read."""

_OF_RECORDS = {
    "not-readable": "a record is not JSON, or not an object",
    "envelope": "_anon is missing, incomplete or malformed, or a group id is not 16 hexadecimal digits",
    "policy": "a record was made under a policy of another name",
    "undeclared-field": "a field that the policy does not publish",
    "identifier-published": "an identifier, or a field in which a person asks for protection, was published",
    "duplicate-field": "a field stands twice in one record: readers see different values",
    "missing-field": "a field that the policy publishes is not there",
    "compound-value": "a field published as it is holds an object or a list: what is inside was never declared",
    "field-form": "a field that the policy changes has not the form of that change: a token, a mask, a rounded number",
    "exact-value": "a quasi-identifier in the form of the input, not generalized",
    "outside-hierarchy": "a quasi-identifier that is no node, interval or unit of its declared hierarchy",
    "unknown-value": "a sensitive value that its hierarchy does not know, or a missing one that the policy rejects",
    "loss": "the declared loss is not that of the published values",
    "two-generalizations": "records of one group differ in their quasi-identifiers",
    "size": "a group has fewer or more records than it declares",
    "row-twice": "two records of one group have the same number, or a group was published again",
    "rows": "the numbers of a group's records are not 0, 1, 2, ...",
    "subjects": "the declared number of people is not possible, differs within a group, or nobody could count them",
}
_BEYOND = {
    "not-in-raw": "no row of the raw table is covered by the record",
    "more-than-raw": "more records than rows of the raw table that they can be made of",
    "raw-value": "a token is a value of the raw table",
    "shift": "a date was not moved by whole days within the bound, or not by as many as others of the same person",
    "people": "the raw rows that fit are of fewer people than the group declares",
    "key": "a record's key is not its group's id",
    "header": "a record has a header",
    "timestamp": "the records of a group have different times: they are not the time of publication",
}


def meanings() -> dict[str, str]:
    """Return every code and what it means; the documentation lists those of the package."""
    return {**_OF_RECORDS, **{code: model.meaning for code, model in known_models().items()}, **_BEYOND}


@dataclass(frozen=True, slots=True)
class Finding:
    """One kind of violation: how many groups (or records, if no group is known) show it, and the first of them."""

    code: str
    meaning: str
    count: int
    groups: tuple[str, ...]
    columns: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Describe the finding in one line.

        >>> str(Finding("loss", "not what it says", 12, ("00000000000000ff",), ("zip",)))
        'loss (zip): not what it says; 12 found: 00000000000000ff, ...'
        """
        where = f" ({', '.join(self.columns)})" if self.columns else ""
        named = [*self.groups, *(f"line {line}" for line in self.lines)]
        groups = f": {', '.join(named)}" if named else ""
        more = ", ..." if self.count > len(named) > 0 else ""
        return f"{self.code}{where}: {self.meaning}; {self.count:,} found{groups}{more}"


@dataclass(slots=True)
class _Noted:
    count: int = 0
    groups: dict[int, None] = field(default_factory=dict)
    columns: dict[str, None] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)


class Findings:
    """A collector of violations: counts all of them, remembers the first groups."""

    def __init__(self) -> None:
        self._noted: dict[str, _Noted] = {}

    def note(
        self,
        code: str,
        groups: Iterable[int] = (),
        count: int | None = None,
        column: str = "",
        lines: Sequence[int] = (),
    ) -> None:
        """Note a violation in these groups, or `count` times if it is not one per group; none is a no-op."""
        given = list(groups)
        if not (len(given) if count is None else count):
            return
        noted = self._noted.setdefault(code, _Noted())
        noted.count += len(given) if count is None else count
        for group in given[: SHOWN * 10]:
            if len(noted.groups) < SHOWN:
                noted.groups[int(group)] = None
        noted.lines += lines[: SHOWN - len(noted.lines)]
        if column:
            noted.columns[column] = None

    def __len__(self) -> int:
        return len(self._noted)

    def all(self) -> list[Finding]:
        """Return every kind found, in the order of `meanings`."""
        return [
            Finding(
                code, meaning, noted.count, tuple(map(name, noted.groups)), tuple(noted.columns), tuple(noted.lines)
            )
            for code, meaning in meanings().items()
            if (noted := self._noted.get(code)) is not None
        ]


def name(group: int) -> str:
    """Return the id of a group as it is published.

    >>> name(255)
    '00000000000000ff'
    """
    return f"{group & (2**64 - 1):016x}"
