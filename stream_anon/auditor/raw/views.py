"""A table as an attacker sees it: which records look alike, what each holds and, to keep score, whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.models import Counts
from stream_anon.auditor.numbers import Label, Rows
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.raw.original import Original, match
from stream_anon.auditor.scales.trees import TreeScale

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class View:
    """A table of records as an attacker sees it; `alike` numbers their classes 0, 1, 2, ...

    `low` and `high` are the leaves that a value of an attribute with a tree may stand for, `guards` the leaves below
    each record's guarding node, (0, -1) for none. `known` is how many people of the attacker's list fit each record,
    `strangers` how many records fit no raw row that is left. `row` is the raw row that each record is made of, -1 for
    none.
    """

    alike: Ints
    values: dict[str, Ints]
    low: dict[str, Ints]
    high: dict[str, Ints]
    guards: dict[str, Ints]
    subject: Ints
    known: Ints
    row: Ints
    strangers: int = 0

    def __len__(self) -> int:
        return len(self.alike)

    def counts(self, name: str) -> Counts:
        """Count how many people of each class have each value: a person's equal values count once."""
        pairs = np.unique(np.stack([self.alike, self.values[name], self.subject], axis=1), axis=0)
        return Counts.of(pairs[:, 0], pairs[:, 1], self.people(), once=True)

    def people(self) -> Ints:
        """Return the number of people per class."""
        pairs = np.unique(np.stack([self.alike, self.subject], axis=1), axis=0)
        return np.bincount(pairs[:, 0])


def before(original: Original, listed: Original, rules: Rules) -> View:
    """Return the view of the raw table without identifiers: records with equal quasi-identifiers are alike."""
    points = np.stack([original.places[name] for name in rules.quasi], axis=1)
    theirs = np.stack([listed.places[name] for name in rules.quasi], axis=1)
    _, which = np.unique(np.concatenate([points, theirs]), axis=0, return_inverse=True, equal_nan=True)
    which = which.ravel()
    people = np.unique(np.stack([which[len(points) :], listed.subject], axis=1), axis=0)
    fitting = np.bincount(people[:, 0], minlength=int(which.max()) + 1)
    _, alike = np.unique(which[: len(points)], return_inverse=True)
    low, high = {}, {}
    for name, column in rules.sensitive.items():
        if isinstance(column.scale, TreeScale):
            low[name] = high[name] = original.leaves[name]
    return View(
        alike,
        original.values,
        low,
        high,
        original.guards,
        original.subject,
        fitting[which[: len(points)]],
        np.arange(len(points)),
    )


def after(rows: Rows, labels: Mapping[int, Label], original: Original, listed: Original, rules: Rules) -> View:
    """Return the view of the published records, alike in groups; each is assigned a raw row it can be made of."""
    kinds = list(original.kinds(rows, labels))
    made_of, _ = match(kinds, len(rows), len(original))
    lost = made_of < 0
    _, alike = np.unique(rows["group"], return_inverse=True)
    subject = np.where(lost, -1 - np.arange(len(rows)), original.subject[made_of])
    boxes, which = np.unique(rows["box"], return_inverse=True)
    everyone = np.arange(len(listed))
    fitting = np.array(
        [len(np.unique(listed.subject[listed.covered(labels[box], everyone)])) for box in boxes.tolist()]
    )
    values, low, high = {}, {}, {}
    for i, (name, column) in enumerate(rules.sensitive.items()):
        values[name] = rows[f"s{i}"].copy()
        if isinstance(column.scale, TreeScale):
            codes, at = np.unique(values[name], return_inverse=True)
            spans = np.array([original.span(name, code) for code in codes.tolist()])
            low[name], high[name] = spans[at, 0], spans[at, 1]
    guards = {name: np.where(lost[:, None], [0, -1], guard[made_of]) for name, guard in original.guards.items()}
    return View(alike, values, low, high, guards, subject, fitting[which], made_of, int(lost.sum()))
