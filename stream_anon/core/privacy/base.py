"""The contract of a privacy model: is a candidate group safe, and if not, how far is it and which rows would help.

People are counted, not rows: a person's equal values count once, and a person with several different values counts once
for each of them. Shares are taken of the people in the group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from itertools import pairwise
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy.base import Floats, Ints
from stream_anon.core.privacy.counting import CountRule

SLACK = 1e-9
"""Shares are ratios of small whole numbers: this is far below their steps and far above rounding errors."""


class PrivacyModel(ABC):
    """One requirement. Its verdict depends on the rows, the policy and what `observe` has seen, on nothing else."""

    name: str
    """The word in the policy; findings name it."""

    words: ClassVar[str] = ""
    """How messages name this form of the model, where it has several; `name` if empty."""

    k: int = 1
    """Every group needs at least this many people."""

    blind: ClassVar[bool] = False
    """Whether its verdict depends on people alone, on no sensitive value."""

    monotone: ClassVar[bool] = False
    """Whether a group that satisfies it still does when rows join, whoever they are."""

    @property
    def people(self) -> int:
        """The number of people with whom it is worth while to ask; a group of fewer satisfies it hardly ever."""
        return self.k

    def certainty(self) -> float:
        """Return how sure of somebody's value it lets a reader be, where that is one number; 0.5 if it is not."""
        return 0.5

    @classmethod
    def in_words(cls) -> str:
        """Return how messages name this form of the model."""
        return cls.words or cls.name

    @abstractmethod
    def shortfall(self, rows: Batch) -> float:
        """0.0 if the rows may be published together; otherwise how far they are from it, in the model's own measure."""

    def shortfalls(self, rows: Batch, starts: Ints) -> Floats:
        """Return the shortfall of each of many groups: rows `starts[g]` up to `starts[g + 1]`."""
        return np.array([self.shortfall(rows.take(slice(*ends))) for ends in pairwise(starts.tolist())])

    @abstractmethod
    def gains(self, rows: Batch, candidates: Batch) -> Floats:
        """For each candidate, by how much the shortfall would fall if it joined; negative if it would grow."""

    def repair(self, rows: Batch) -> Batch:
        """Return the rows, with sensitive values raised where that is what the model needs; the same rows if not."""
        return rows

    @classmethod
    def repairs(cls) -> bool:
        """Whether it raises sensitive values: an algorithm must cope with that to honour it."""
        return cls.repair is not PrivacyModel.repair

    def counted(self) -> tuple[CountRule, ...] | None:
        """Return the rules by which compiled loops judge in its place, beside its k; None if counts are not enough."""
        return None

    def ready(self) -> bool:
        """Whether the model knows what it needs of the whole; until then it holds for no group."""
        return True

    def impossible(self, rows: Batch) -> npt.NDArray[np.bool_]:
        """Which rows no group can ever hold, whoever joins them."""
        return np.zeros(len(rows), dtype=np.bool_)

    def observe(self, rows: Batch) -> None:  # noqa: B027 - most models learn nothing
        """See rows that arrive, whether or not they are ever published: for models that learn from the whole."""


def distinct(values: Ints) -> int:
    """Return the number of different values."""
    return len(set(values.tolist()))


def distinct_each(values: Ints, starts: Ints) -> Ints:
    """Return the number of different values in each group: `values[starts[g]:starts[g + 1]]`.

    >>> distinct_each(np.array([7, 7, 9, 7, 8, 8]), np.array([0, 3, 6]))
    array([2, 2])
    """
    if all_different(values):
        return np.diff(starts)
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((values, group))
    values, group = values[order], group[order]
    first = np.ones(len(values), dtype=np.bool_)
    first[1:] = (values[1:] != values[:-1]) | (group[1:] != group[:-1])
    return np.bincount(group[first], minlength=len(starts) - 1)


def all_different(values: Ints) -> bool:
    """Tell whether no value is there twice: sorting values is far cheaper than sorting their places."""
    ordered = np.sort(values)
    return bool((ordered[1:] != ordered[:-1]).all())


def excess(counts: Ints, bounds: Floats, people: int) -> float:
    """Return the people beyond the allowed share of their value, summed over the values; 0 within rounding."""
    over = counts - bounds * people
    return float(over[over > SLACK * max(people, 1)].sum())


def count_people(values: Ints, subjects: Ints) -> tuple[Ints, Ints, int]:
    """Different values, the number of different people who have each, and the number of people in all.

    >>> count_people(np.array([7, 7, 9, 7]), np.array([1, 1, 1, 2]))
    (array([7, 9]), array([2, 1]), 2)
    """
    counts = Counter([value for value, _ in set(zip(values.tolist(), subjects.tolist(), strict=True))])
    found = sorted(counts)
    return np.array(found, dtype=np.int64), np.array([counts[value] for value in found], np.int64), distinct(subjects)


class SensitiveModel(PrivacyModel):
    """A requirement on the distribution of one sensitive column."""

    missing: int | None = None
    """The code of a value that is not there; it counts neither as a value nor among those who have one."""

    def __init__(self, column: int) -> None:
        self.column = column

    def with_value(self, rows: Batch) -> Batch:
        """Return the rows that have a value."""
        return rows if self.missing is None else rows.take(rows.sensitive[:, self.column] != self.missing)

    @abstractmethod
    def judge(self, values: Ints, counts: Ints, people: int) -> float:
        """Return the shortfall of a group with these values, held by so many people each, of `people` in all."""

    def shortfall(self, rows: Batch) -> float:
        """Return the shortfall of the rows' distribution."""
        rows = self.with_value(rows)
        return self.judge(*count_people(rows.sensitive[:, self.column], rows.subject))

    def gains(self, rows: Batch, candidates: Batch) -> Floats:
        """Return the gain of each candidate as if it were a new person; each different value is judged once."""
        rows = self.with_value(rows)
        values, counts, people = count_people(rows.sensitive[:, self.column], rows.subject)
        before = self.judge(values, counts, people)
        offered, which = np.unique(candidates.sensitive[:, self.column], return_inverse=True)
        gain = np.empty(len(offered))
        for i, value in enumerate(offered):
            place = int(np.searchsorted(values, value))
            if value == self.missing:
                gain[i] = 0.0
            elif place < len(values) and values[place] == value:
                more = counts.copy()
                more[place] += 1
                gain[i] = before - self.judge(values, more, people + 1)
            else:
                gain[i] = before - self.judge(np.insert(values, place, value), np.insert(counts, place, 1), people + 1)
        return np.asarray(gain[which])
