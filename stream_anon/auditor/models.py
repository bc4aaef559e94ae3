"""The privacy models by their definitions, judged for many groups at once from the counts of published values.

A person's equal values count once, and from outside nobody sees which rows are one person's. Where a group has more
rows than people, a model fails only if it fails for every way in which the surplus rows could repeat a person's value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.values import MISSING_CODE

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

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


@dataclass(frozen=True, slots=True)
class KAnonymity:
    """Every group has at least k people."""

    k: int
    code: str = field(default="k_anonymity", init=False)

    def failing(self, people: Ints) -> Bools:
        """Return the groups with fewer than k people."""
        return np.asarray(people < self.k)


@dataclass(frozen=True, slots=True)
class LDiversity:
    """Every group has at least l well-represented values: distinct, by entropy, or recursive (c, l)."""

    attribute: str
    l: int  # noqa: E741 - the literature's name
    variant: str
    c: float
    code: str = field(default="l_diversity", init=False)

    def failing(self, counts: Counts) -> Bools:
        """Return the groups that are not diverse, whichever rows repeat a person's value."""
        if self.variant == "distinct":
            return np.asarray(counts.distinct < self.l)
        suspect = self._recursive(counts) if self.variant == "recursive" else counts.effective < self.l - SLACK
        for g in np.flatnonzero(suspect & (counts.surplus > 0)):
            suspect[g] = self._alone(counts.levelled(int(g)))
        return np.asarray(suspect)

    def _recursive(self, counts: Counts) -> Bools:
        order = np.lexsort((-counts.number, counts.group))
        number = counts.number[order]
        rank = np.arange(len(number)) - counts.starts[counts.group]
        tail = counts.sum(np.where(rank >= self.l - 1, number, 0))
        return np.asarray(number[counts.starts] >= self.c * tail - SLACK)

    def _alone(self, counts: Ints) -> bool:
        """Tell whether the counts of one group, most frequent first, fail."""
        if self.variant == "recursive":
            return bool(counts[0] >= self.c * counts[self.l - 1 :].sum() - SLACK)
        share = counts / counts.sum()
        return bool(np.exp(-(share * np.log(share)).sum()) < self.l - SLACK)


@dataclass(frozen=True, slots=True)
class LCAnonymity:
    """Every group has as many values as its most demanding value requires, none with a share above c."""

    attribute: str
    l: int  # noqa: E741 - the literature's name
    c: float
    demands: dict[int, int]
    code: str = field(default="lc_anonymity", init=False)

    def failing(self, counts: Counts) -> Bools:
        """Return the groups with too few values, or one too frequent whichever rows repeat a person's value."""
        wanted = np.maximum.reduceat(looked_up(counts.value, self.demands, self.l), counts.starts)
        return np.asarray((counts.distinct < wanted) | too_frequent(counts, np.full(len(counts.value), self.c)))


@dataclass(frozen=True, slots=True)
class AlphaK:
    """Every group has at least k people and no value with a share above its alpha."""

    attribute: str
    k: int
    alphas: dict[int, float]
    default: float
    code: str = field(default="alpha_k", init=False)

    def failing(self, counts: Counts) -> Bools:
        """Return the groups with fewer than k people or with a value that is too frequent."""
        return np.asarray((counts.people < self.k) | too_frequent(counts, self.bounds(counts.value)))

    def bounds(self, values: Ints) -> Floats:
        """Return the alpha of each value."""
        return looked_up(values, self.alphas, self.default)


@dataclass(frozen=True, slots=True)
class TCloseness:
    """The distribution of values in every group is within t of the reference, whose values are listed in order."""

    attribute: str
    t: float
    ordered: bool
    reference: dict[int, float]
    code: str = field(default="t_closeness", init=False)

    def distances(self, counts: Counts) -> Floats:
        """Return how far each group is from the reference, by rows; 1 if it has a value unknown to the reference."""
        place = looked_up(counts.value, {code: i for i, code in enumerate(self.reference)}, -1).astype(np.int64)
        unknown = np.unique(counts.group[(place < 0) & (counts.number > 0)])
        shares = np.zeros((len(counts.starts), len(self.reference)))
        known = place >= 0
        shares[counts.group[known], place[known]] = (counts.number / np.maximum(counts.rows[counts.group], 1))[known]
        difference = shares - np.array(list(self.reference.values()))
        if self.ordered:
            distance = np.abs(np.cumsum(difference, axis=1)[:, :-1]).sum(axis=1) / max(len(self.reference) - 1, 1)
        else:
            distance = np.abs(difference).sum(axis=1) / 2
        distance[unknown] = 1.0
        return np.asarray(distance)

    def failing(self, counts: Counts) -> Bools:
        """Return the groups that are too far away, except those with more rows than people: they cannot be judged."""
        return np.asarray((self.distances(counts) > self.t + SLACK) & (counts.surplus <= 0))


@dataclass(frozen=True, slots=True)
class Guarding:
    """Nobody's value is placed under the node they guard with a chance above p; judged with the raw table only."""

    attribute: str
    p: float
    code: str = field(default="guarding_node", init=False)


ByCounts = LDiversity | LCAnonymity | AlphaK | TCloseness
Model = KAnonymity | ByCounts | Guarding


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
