"""Judge complete groups: their records against what they declare, their people and values against the policy."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.attacks.chance import Chances
from stream_anon.auditor.findings import Findings
from stream_anon.auditor.models import Counts, PeopleModel, ValueModel
from stream_anon.auditor.numbers import Rows
from stream_anon.auditor.policy import Rules

Ints = npt.NDArray[np.int64]

SPREAD = 60_000
"""Milliseconds between the first and the last record of a group: they are sent in one go, the input's were not."""


@dataclass(slots=True)
class Seen:
    """The extremes of all groups so far. `uncounted` groups do not declare how many people they hold."""

    groups: int = 0
    records: int = 0
    fewest_rows: int = 0
    fewest_people: int = 0
    uncounted: int = 0
    undecided: int = 0
    sizes: dict[int, int] = field(default_factory=dict)
    people: dict[int, int] = field(default_factory=dict)
    fewest_values: dict[str, int] = field(default_factory=dict)
    least_effective: dict[str, float] = field(default_factory=dict)
    largest_share: dict[str, float] = field(default_factory=dict)
    farthest: dict[str, float] = field(default_factory=dict)


class Judge:
    """The judge of blocks of complete groups, sorted by group and row; it counts records if there is no subject."""

    def __init__(self, rules: Rules | None, findings: Findings) -> None:
        self._rules, self._findings = rules, findings
        self._growing = rules is None or rules.growing
        self._records = rules is not None and rules.subject is None
        self.seen, self.chances = Seen(), Chances(rules.k if rules else 1)
        self._classes: list[npt.NDArray[np.void]] = []

    def __call__(self, rows: Rows) -> None:
        """Judge one block of complete groups."""
        group, starts, number = np.unique(rows["group"], return_index=True, return_counts=True)
        which = np.repeat(np.arange(len(group)), number)
        declared = np.maximum.reduceat(rows["people"], starts)
        uncounted = np.ones(len(group), np.bool_) if self._records else declared == 0
        people = np.where(uncounted, number, np.minimum(declared, number))
        self.seen.uncounted += int(uncounted.sum())
        self._structure(rows, group, starts, number, which)
        self.seen.groups += len(group)
        self.seen.records += len(rows)
        self.seen.fewest_rows = min(self.seen.fewest_rows or int(number.min()), int(number.min()))
        self.seen.fewest_people = min(self.seen.fewest_people or int(people.min()), int(people.min()))
        for tally, counted in ((self.seen.sizes, number), (self.seen.people, people)):
            for size, count in zip(*np.unique(counted, return_counts=True), strict=True):
                tally[int(size)] = tally.get(int(size), 0) + int(count)
        self.chances.add(people, number)
        if self._rules is not None:
            self._models(rows, group, number, which, people, self._rules)
            classes = np.zeros(len(group), dtype=[("box", "i8"), ("rows", "u4"), ("people", "u4")])
            classes["box"], classes["rows"], classes["people"] = rows["box"][starts], number, people
            self._classes.append(classes)

    def _structure(self, rows: Rows, group: Ints, starts: Ints, number: Ints, which: Ints) -> None:
        """Check that each group is consistent with what it declares of itself."""
        note = self._findings.note

        def least(name: str) -> Ints:
            return np.asarray(np.minimum.reduceat(rows[name], starts))

        def most(name: str) -> Ints:
            return np.asarray(np.maximum.reduceat(rows[name], starts))

        note("two-generalizations", group[least("box") != most("box")])
        expected = np.arange(len(rows)) - starts[which]
        twice = np.zeros(len(rows), dtype=np.bool_)
        twice[1:] = (rows["row"][1:] == rows["row"][:-1]) & (which[1:] == which[:-1])
        note("row-twice", group[np.unique(which[twice])])
        odd = np.setdiff1d(which[rows["row"] != expected], which[twice])
        note("rows", group[odd])
        declared = most("size")
        if self._growing:  # a row that was added later declares the size it made
            fits = np.minimum.reduceat(rows["size"] > rows["row"], starts) & _rising(rows["size"], which)
            note("size", group[(declared != number) | ~fits])
            note("subjects", group[~_rising(rows["people"], which)])
        else:
            note("size", group[(declared != number) | (least("size") != declared)])
            note("subjects", group[least("people") != most("people")])
        if self._records:  # nobody could have counted them
            note("subjects", group[most("people") > 0])
        else:
            nobody = least("people") < (1 if self._rules is not None else 0)
            note("subjects", group[(most("people") > number) | nobody])
        note("timestamp", group[most("time") - least("time") > SPREAD])

    def _models(self, rows: Rows, group: Ints, number: Ints, which: Ints, people: Ints, rules: Rules) -> None:
        """Check that each group satisfies each model."""
        counts = {name: Counts.of(which, rows[f"s{i}"], people) for i, name in enumerate(rules.sensitive)}
        for name, counted in counts.items():
            self._measure(name, counted)
        surplus = int((number > people).sum())
        for model in rules.models:
            if isinstance(model, PeopleModel):
                self._findings.note(model.code, group[model.failing(people)])
            elif isinstance(model, ValueModel):
                self._judge(model, counts[model.attribute], group)
        if any(model.by_shares for model in rules.models):
            self.seen.undecided += surplus

    def _judge(self, model: ValueModel, counts: Counts, group: Ints) -> None:
        self._findings.note(model.code, group[model.failing(counts)], column=model.attribute)
        distances = model.distances(counts)
        if distances is not None:
            farthest = float(distances.max())
            self.seen.farthest[model.attribute] = max(self.seen.farthest.get(model.attribute, 0.0), farthest)

    def _measure(self, name: str, counts: Counts) -> None:
        seen = self.seen
        fewest, effective = int(counts.distinct.min()), float(counts.effective.min())
        seen.fewest_values[name] = min(seen.fewest_values.get(name, fewest), fewest)
        seen.least_effective[name] = min(seen.least_effective.get(name, effective), effective)
        seen.largest_share[name] = max(seen.largest_share.get(name, 0.0), float(counts.share.max()))

    def classes(self) -> tuple[int, int]:
        """Return the number of combinations of published quasi-identifiers, and the rows of the rarest."""
        if not self._classes:
            return 0, 0
        found = np.concatenate(self._classes)
        _, which = np.unique(found["box"], return_inverse=True)
        return int(which.max()) + 1, int(np.bincount(which, weights=found["rows"]).min())


def _rising(values: Ints, which: Ints) -> npt.NDArray[np.bool_]:
    """Tell for each group whether its values never fall."""
    falls = np.zeros(int(which[-1]) + 1, dtype=np.bool_)
    falls[which[1:][(values[1:] < values[:-1]) & (which[1:] == which[:-1])]] = True
    return ~falls


def without_repeats(rows: Rows) -> Rows:
    """Keep the last of rows that differ only in time: only the last attempt to publish a group was complete."""
    same = np.ones(len(rows), dtype=np.bool_)
    for name in rows.dtype.names or ():
        if name != "time":
            same[:-1] &= rows[name][1:] == rows[name][:-1]
    same[-1:] = False
    return np.asarray(rows[~same])
