"""Measure attacks on a raw and a published table: the share of records on which each attack succeeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.attacks.composition import composed
from stream_anon.auditor.attacks.definetti import learned
from stream_anon.auditor.attacks.measured import Measured
from stream_anon.auditor.attacks.visits import after_visits
from stream_anon.auditor.findings import Findings
from stream_anon.auditor.models import SLACK, Guarding
from stream_anon.auditor.numbers import Label, Numbers, Rows
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.raw.original import Original
from stream_anon.auditor.raw.views import View, after, before
from stream_anon.auditor.reading.files import read_chunks
from stream_anon.auditor.reading.formats import Unreadable
from stream_anon.auditor.scales.trees import TreeScale

Bools = npt.NDArray[np.bool_]

LARGE_SHARE = 0.5
"""A value that more people of a class have than this is a safe guess, if the policy names no share itself."""


@dataclass(frozen=True, slots=True)
class Attack:
    """The result of one attack: the share of records it succeeds on, before and after, and what success means."""

    name: str
    attribute: str
    meaning: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The results of all attacks on one table.

    `highest_chance` is the best chance to name the person of a record, raw and published.
    Where `k_counts` is records, every record was taken for another person's: the chance may be higher.
    """

    source: str
    policy: str
    k: int
    k_counts: str
    raw_rows: int
    records: int
    highest_chance: tuple[float, float]
    attacks: tuple[Attack, ...]
    measured: tuple[Measured, ...]
    notes: tuple[str, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the result as plain data for JSON."""
        return asdict(self)


def attack_file(
    path: Path,
    rules: Rules,
    original: Original,
    listed: Original | None = None,
    second: tuple[Path, Rules] | None = None,
) -> AttackResult:
    """Attack a published file; `listed` are people by name and quasi-identifiers, the raw table's own if None.

    `second` is what else was published of the same raw table, and under which policy.
    """
    rows, labels = _published(path, rules, original)
    known = original if listed is None else listed
    raw, published = before(original, known, rules), after(rows, labels, original, known, rules)
    chances = tuple(float(_chance(view).max()) for view in (raw, published))
    notes = [f"{published.strangers:,} records fit no raw row that is left"] if published.strangers else []
    if rules.subject is None:
        notes.append("people not judged: the policy names no subject; each record was counted, and nobody followed")
    return AttackResult(
        source=str(path),
        policy=rules.name,
        k=rules.k,
        k_counts="people" if rules.subject else "records",
        raw_rows=len(raw),
        records=len(published),
        highest_chance=(chances[0], chances[1]),
        attacks=tuple(
            Attack(name, attribute, meaning, _share(succeeds(raw)), _share(succeeds(published)))
            for name, attribute, meaning, succeeds in attacks(rules)
        ),
        measured=tuple(_measured(published, rows, labels, rules, original, known, second)),
        notes=tuple(notes),
    )


def _published(path: Path, rules: Rules, original: Original) -> tuple[Rows, dict[int, Label]]:
    numbers = Numbers(rules, Findings(), keep=True)
    found = [numbers.rows(chunk) for chunk in read_chunks(path, rules, Findings())]
    if not sum(map(len, found)) or not len(original):
        raise Unreadable(f"{path}: there is nothing to attack: no records, or no raw rows")
    rows = np.concatenate(found)
    return rows[np.lexsort((rows["row"], rows["group"]))], numbers.labels


def _measured(
    view: View,
    rows: Rows,
    labels: dict[int, Label],
    rules: Rules,
    original: Original,
    listed: Original,
    second: tuple[Path, Rules] | None,
) -> Iterator[Measured]:
    """Run the attacks that need more than one group to succeed."""
    if rules.subject:
        yield from after_visits(view, rows, labels, listed)
    yield from learned(view, original, rules)
    if second is not None:
        path, theirs = second
        other = after(*_published(path, theirs, original), original, original, theirs)
        yield composed(view, other, rules.k, "people" if rules.subject else "records")


Succeeds = Callable[[View], Bools]


def attacks(rules: Rules) -> Iterator[tuple[str, str, str, Succeeds]]:
    """Yield every attack that applies to this policy: name, attribute, meaning, and on which records it succeeds."""
    k = rules.k
    whose = "people names its person" if rules.subject else "records names its own"
    yield "linking", "", f"a list of {whose} with a chance above 1/{k}", partial(_linked, k=k)
    for name, column in rules.sensitive.items():
        share = _allowed(rules, name)
        yield "homogeneity", name, "all alike have one value", partial(_few, name=name, most=1)
        meaning = f"some value has a share above {share:g} among those alike"
        yield "skew", name, meaning, partial(_skewed, name=name, share=share)
        if isinstance(column.scale, TreeScale) and column.scale.inner:
            meaning = "all alike have values under one node below the root"
            yield "similarity", name, meaning, partial(_similar, name=name, tree=column.scale)
        for j in (1, 2):
            meaning = f"whoever can exclude {j} value{'s' * (j > 1)} knows the value"
            yield f"background knowledge {j}", name, meaning, partial(_few, name=name, most=j + 1)
    for model in rules.models:
        if isinstance(model, Guarding):
            meaning = f"the value is placed under its guard with a chance above {model.p:g}"
            yield "guarding nodes", model.attribute, meaning, partial(_breached, name=model.attribute, p=model.p)
    if rules.subject:
        meaning = f"fewer than {k} people have records wherever its person has one"
        yield "intersection", "", meaning, partial(_intersected, k=k)


def _share(succeeded: Bools) -> float:
    return float(succeeded.mean()) if len(succeeded) else 0.0


def _chance(view: View) -> npt.NDArray[np.float64]:
    return np.where(view.known > 0, 1 / np.maximum(view.known, 1), 0.0)


def _linked(view: View, k: int) -> Bools:
    return np.asarray(_chance(view) > 1 / k + SLACK)


def _few(view: View, name: str, most: int) -> Bools:
    return np.asarray(view.counts(name).distinct[view.alike] <= most)


def _skewed(view: View, name: str, share: float) -> Bools:
    return np.asarray(view.counts(name).share[view.alike] > share + SLACK)


def _allowed(rules: Rules, name: str) -> float:
    """Return the share of one value that the policy allows, or the default if it sets none for all values."""
    for model in rules.models:
        if model.column == name and model.allowed is not None:
            return model.allowed
    return LARGE_SHARE


def _similar(view: View, name: str, tree: TreeScale) -> Bools:
    """Return the records of classes whose values all lie below one node that is not the root."""
    count = int(view.alike.max()) + 1
    low, high = np.full(count, tree.size), np.full(count, -1)
    np.minimum.at(low, view.alike, view.low[name])
    np.maximum.at(high, view.alike, view.high[name])
    inside = np.zeros(count, dtype=np.bool_)
    for first, last in tree.below_root:
        inside |= (low >= first) & (high <= last)
    return np.asarray(inside[view.alike])


def breach(view: View, name: str) -> npt.NDArray[np.float64]:
    """Return the chance that each record's value is placed under its guard, averaged over the people of its class."""
    low, high, guards = view.low[name], view.high[name], view.guards[name]
    chance = np.zeros(len(view))
    order = np.argsort(view.alike, kind="stable")
    for index in np.split(order, np.flatnonzero(np.diff(view.alike[order])) + 1):
        people, person = np.unique(view.subject[index], return_inverse=True)
        for first, last in np.unique(guards[index], axis=0).tolist():
            if last < first:
                continue
            under = np.minimum(high[index], last) - np.maximum(low[index], first) + 1
            share = np.maximum(under, 0) / np.maximum(high[index] - low[index] + 1, 1)
            most = np.zeros(len(people))
            np.maximum.at(most, person, share)
            guarded = (guards[index] == [first, last]).all(axis=1)
            chance[index[guarded]] = most.sum() / len(people)
    return chance


def _breached(view: View, name: str, p: float) -> Bools:
    return np.asarray(breach(view, name) > p + SLACK)


def _intersected(view: View, k: int) -> Bools:
    """Return the records of people with several records whose classes have fewer than k people in common."""
    pairs = np.unique(np.stack([view.subject, view.alike], axis=1), axis=0)
    members: dict[int, set[int]] = {}
    classes: dict[int, list[int]] = {}
    for subject, alike in pairs.tolist():
        members.setdefault(alike, set()).add(subject)
        classes.setdefault(subject, []).append(alike)
    people, records = np.unique(view.subject, return_counts=True)
    several = set(people[records > 1].tolist())
    found = {
        subject
        for subject, seen in classes.items()
        if subject in several and len(set.intersection(*(members[alike] for alike in seen))) < k
    }
    return np.isin(view.subject, np.array(sorted(found), dtype=np.int64))
