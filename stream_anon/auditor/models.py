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
    """The values of one sensitive attribute in many groups: `number[i]` rows of group `group[i]` have `value[i]`.

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
        """Count; groups are numbered 0, 1, 2, ... and none is empty. `once`: no row repeats a person's value.

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
        """Sums over the values of each group."""
        return np.add.reduceat(values, self.starts).astype(np.float64)

    @property
    def distinct(self) -> Ints:
        """Different values per group."""
        return np.add.reduceat((self.number > 0).astype(np.int64), self.starts)

    @property
    def share(self) -> Floats:
        """The share of the most frequent value, of the people, at the least."""
        most = np.maximum.reduceat(self.number, self.starts)
        return np.asarray(np.maximum(most - self.surplus, 1) / np.maximum(self.people, 1))

    @property
    def effective(self) -> Floats:
        """How many equally frequent values a group's are worth: e to the power of their entropy, by rows."""
        share = self.number / np.maximum(self.rows[self.group], 1)
        return np.asarray(np.exp(-self.sum(share * np.log(np.where(share > 0, share, 1.0)))))

    def levelled(self, g: int) -> Ints:
        """The counts of one group after its surplus rows were taken from the most frequent values: the best case."""
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
    """At least k people."""

    k: int
    code: str = field(default="k_anonymity", init=False)

    def failing(self, people: Ints) -> Bools:
        """Groups of fewer people."""
        return np.asarray(people < self.k)


@dataclass(frozen=True, slots=True)
class LDiversity:
    """At least l well-represented values: distinct, by entropy, or recursive (c, l)."""

    attribute: str
    l: int  # noqa: E741 - the literature's name
    variant: str
    c: float
    code: str = field(default="l_diversity", init=False)

    def failing(self, counts: Counts) -> Bools:
        """Groups that are not diverse for any way to count people."""
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
        """Whether counts, most frequent first, fail."""
        if self.variant == "recursive":
            return bool(counts[0] >= self.c * counts[self.l - 1 :].sum() - SLACK)
        share = counts / counts.sum()
        return bool(np.exp(-(share * np.log(share)).sum()) < self.l - SLACK)


@dataclass(frozen=True, slots=True)
class LCAnonymity:
    """As many values as the most demanding one present asks for, none with a share above c."""

    attribute: str
    l: int  # noqa: E741 - the literature's name
    c: float
    demands: dict[int, int]
    code: str = field(default="lc_anonymity", init=False)

    def failing(self, counts: Counts) -> Bools:
        """Groups with too few values, or with one that too many people have for any way to count them."""
        wanted = np.maximum.reduceat(looked_up(counts.value, self.demands, self.l), counts.starts)
        return np.asarray((counts.distinct < wanted) | too_frequent(counts, np.full(len(counts.value), self.c)))


@dataclass(frozen=True, slots=True)
class AlphaK:
    """At least k people, no value with a share above its alpha."""

    attribute: str
    k: int
    alphas: dict[int, float]
    default: float
    code: str = field(default="alpha_k", init=False)

    def failing(self, counts: Counts) -> Bools:
        """Groups of fewer people, or with a value that too many of them have."""
        return np.asarray((counts.people < self.k) | too_frequent(counts, self.bounds(counts.value)))

    def bounds(self, values: Ints) -> Floats:
        """The alpha of each value."""
        return looked_up(values, self.alphas, self.default)


@dataclass(frozen=True, slots=True)
class TCloseness:
    """The distribution of values is within t of the reference, whose values are in their order."""

    attribute: str
    t: float
    ordered: bool
    reference: dict[int, float]
    code: str = field(default="t_closeness", init=False)

    def distances(self, counts: Counts) -> Floats:
        """How far each group is from the reference, by rows; 1 with a value that the reference does not know."""
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
        """Groups too far away; where rows outnumber people nobody can tell from outside."""
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
    """The table's entry for each value."""
    if not table:
        return np.full(len(values), float(default))
    found, which = np.unique(values, return_inverse=True)
    return np.array([table.get(int(value), default) for value in found], dtype=np.float64)[which]


def too_frequent(counts: Counts, bounds: Floats) -> Bools:
    """Groups in which more people have some value than its bound allows, whichever rows repeat a person's value."""
    people = counts.people[counts.group]
    allowed = np.floor(bounds * people + SLACK * np.maximum(people, 1))
    excess = counts.sum(np.maximum(counts.number - allowed, 0))
    impossible = np.maximum.reduceat(np.where((allowed < 1) & (counts.number > 0), 1, 0), counts.starts)
    return np.asarray((excess > counts.surplus) | (impossible > 0))
