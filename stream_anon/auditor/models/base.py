"""What the auditor's models share: the counts of published values, and what every model must be able to say.

A person's equal values count once, and from outside nobody sees which rows are one person's. Where a group has more
rows than people, a model fails only if it fails for every way in which the surplus rows could repeat a person's value.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.reading.source import refusal
from stream_anon.auditor.values import MISSING_CODE, SensitiveColumn

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Columns = Mapping[str, SensitiveColumn]

SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Counts:
    """The value counts of one sensitive attribute: `number[i]` rows of group `group[i]` have `value[i]`.

    Sorted by group; `starts[g]` is the first entry of group g. `rows`, `people` and `surplus` are per group: `surplus`
    rows may repeat a value of one of its people.
    """

    group: Ints
    value: Ints
    number: Ints
    starts: Ints
    rows: Ints
    people: Ints
    surplus: Ints

    @classmethod
    def of(cls, group: Ints, value: Ints, people: Ints, once: bool = False) -> Counts:
        """Count the values of groups numbered 0, 1, 2, ..., none empty. `once`: no row repeats a person's value.

        What is not there (`MISSING_CODE`) is kept with the number 0: it counts neither as a value nor among the rows
        and people of whom a value is known.
        """
        order = np.lexsort((value, group))
        group, value = group[order], value[order]
        first = np.ones(len(group), dtype=np.bool_)
        first[1:] = (group[1:] != group[:-1]) | (value[1:] != value[:-1])
        at = np.flatnonzero(first)
        number = np.diff(at, append=len(group))
        group, value = group[at], value[at]
        number = np.where(value == MISSING_CODE, 0, number)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        rows = np.add.reduceat(number, starts)
        known = np.minimum(people, rows)
        return cls(group, value, number, starts, rows, known, np.zeros_like(rows) if once else rows - known)

    def sum(self, values: Ints | Floats) -> Floats:
        """Sum the given numbers over the values of each group."""
        return np.add.reduceat(values, self.starts).astype(np.float64)

    @property
    def distinct(self) -> Ints:
        """The number of different values per group."""
        return np.add.reduceat((self.number > 0).astype(np.int64), self.starts)

    @property
    def share(self) -> Floats:
        """The share of people with the most frequent value: a lower bound."""
        most = np.maximum.reduceat(self.number, self.starts)
        return np.asarray(np.maximum(most - self.surplus, 1) / np.maximum(self.people, 1))

    @property
    def effective(self) -> Floats:
        """The number of equally frequent values with the same entropy, per group, by rows."""
        share = self.number / np.maximum(self.rows[self.group], 1)
        return np.asarray(np.exp(-self.sum(share * np.log(np.where(share > 0, share, 1.0)))))

    def levelled(self, g: int) -> Ints:
        """Return the counts of a group with its surplus rows taken from the most frequent values: the best case."""
        end = self.starts[g + 1] if g + 1 < len(self.starts) else len(self.group)
        counts = np.sort(self.number[self.starts[g] : end])[::-1]
        counts = counts[counts > 0].copy()
        for _ in range(int(self.surplus[g])):
            top = int(np.flatnonzero(counts == counts[0])[-1]) if len(counts) else 0
            if not len(counts) or counts[top] == 1:
                break
            counts[top] -= 1
        return counts


class Model(ABC):
    """A privacy model by its definition, as the auditor reads it from a policy.

    `code` is its word in the policy and the code of its findings, `meaning` what such a finding says. `raises`: values
    may be published as ancestors of theirs. `only_raw` tells why it can be judged with the raw table only, if so.
    """

    code: ClassVar[str]
    meaning: ClassVar[str]
    raises: ClassVar[bool] = False
    only_raw: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def read(cls, spec: dict[str, Any], columns: Columns, folder: Path) -> Built:
        """Read the model from its entry in the policy; files it names are in the folder."""

    @abstractmethod
    def promise(self, who: str) -> str:
        """Return in words what it promises of every group; `who` is people, or records without a subject."""

    @property
    def column(self) -> str:
        """The sensitive attribute it looks at, none for a model of people alone."""
        return ""

    @property
    def people(self) -> int:
        """The number of people that it asks for in a group."""
        return 1

    @property
    def by_shares(self) -> bool:
        """Whether it matters how many people have a value, which surplus rows leave open."""
        return True

    @property
    def allowed(self) -> float | None:
        """The largest share that one value may have, if there is one for all values."""
        return None


Built = tuple[Model | None, str]
"""A model, None if nothing of it can be judged from outside, and what of it cannot."""


class PeopleModel(Model):
    """A model of the number of people in a group alone."""

    @property
    def by_shares(self) -> bool:
        """Whether it matters how many people have a value: never."""
        return False

    @abstractmethod
    def failing(self, people: Ints) -> Bools:
        """Return which groups fail, by their number of people."""


class ValueModel(Model):
    """A model of the values of one sensitive attribute, judged by their counts."""

    attribute: str

    @property
    def column(self) -> str:
        """The sensitive attribute it looks at."""
        return self.attribute

    @abstractmethod
    def failing(self, counts: Counts) -> Bools:
        """Return which groups fail, whichever rows repeat a person's value."""

    def distances(self, counts: Counts) -> Floats | None:
        """Return how far each group is from a reference; None for a model that has none."""
        return None


def looked_up(values: Ints, table: dict[int, int] | dict[int, float], default: float) -> Floats:
    """Look up each value in the table, with a default for unknown ones."""
    if not table:
        return np.full(len(values), float(default))
    found, which = np.unique(values, return_inverse=True)
    return np.array([table.get(int(value), default) for value in found], dtype=np.float64)[which]


def too_frequent(counts: Counts, bounds: Floats) -> Bools:
    """Return the groups with a value above its bound, whichever rows repeat a person's value."""
    people = counts.people[counts.group]
    allowed = np.floor(bounds * people + SLACK * np.maximum(people, 1))
    excess = counts.sum(np.maximum(counts.number - allowed, 0))
    impossible = np.maximum.reduceat(np.where((allowed < 1) & (counts.number > 0), 1, 0), counts.starts)
    return np.asarray((excess > counts.surplus) | (impossible > 0))


def read_table(path: Path) -> dict[str, list[str]]:
    """Read the lines of a table with a header: value, then its cells."""
    try:
        lines = list(csv.reader(path.read_text("utf-8-sig").splitlines(), delimiter=";"))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise refusal(path, "missing-file", "a table of the policy cannot be read") from None
    return {line[0]: line[1:] for line in lines[1:] if line}
