"""Find what only the raw table can show: invented, moved or doubled rows, overstated people, breached guards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.attacks.chance import Chance, Chances
from stream_anon.auditor.findings import Findings
from stream_anon.auditor.models import SLACK, Counts, Guarding, ValueModel
from stream_anon.auditor.numbers import Label, Rows
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.raw.changed import compare_changes
from stream_anon.auditor.raw.matching import largest
from stream_anon.auditor.raw.original import Kind, Original, match

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Compared:
    """The result of a comparison with the raw table.

    `determined` groups can have been made of one set of raw rows only.

    `unread` are the first lines of the raw table that are not records, each with its code. `chance` is that to
    identify the person of a raw row from its exact quasi-identifiers. It and `fewest_people` are None where the policy
    names no subject: nobody knows which rows are one person's.
    """

    raw_rows: int = 0
    covered: int = 0
    matched: int = 0
    determined: int = 0
    fewest_people: int | None = None
    largest_breach: float | None = None
    longest_delay: float | None = None
    chance: Chance | None = None
    unread: list[dict[str, int | str]] = field(default_factory=list)


def compare(rows: Rows, labels: Mapping[int, Label], original: Original, rules: Rules, findings: Findings) -> Compared:
    """Compare all published rows, sorted by group, with the raw table."""
    kinds = list(original.kinds(rows, labels))
    found = Compared(raw_rows=len(original), chance=_chance_before(original, rules) if rules.subject else None)
    found.covered = sum(kind.number for kind, _ in kinds if len(kind.candidates))
    matched, lacking = match(kinds, len(rows), len(original))
    found.matched = int((matched >= 0).sum())
    findings.note("not-in-raw", dict.fromkeys(kind.group for kind in lacking if not len(kind.candidates)))
    findings.note("more-than-raw", dict.fromkeys(kind.group for kind in lacking if len(kind.candidates)))
    compare_changes(kinds, rows, original, rules, findings)
    groups: dict[int, list[tuple[Kind, Ints]]] = {}
    for kind, index in kinds:
        groups.setdefault(kind.group, []).append((kind, index))
    for group, members in groups.items():
        _judge(group, members, rows, original, rules, findings, found)
    return found


def _chance_before(original: Original, rules: Rules) -> Chance:
    people, rows = original.alike()
    chances = Chances(rules.k)
    chances.add(people, rows)
    return chances.all()


def _judge(
    group: int,
    members: list[tuple[Kind, Ints]],
    rows: Rows,
    original: Original,
    rules: Rules,
    findings: Findings,
    found: Compared,
) -> None:
    """Judge one group by the people its records can belong to."""
    declared = int(max(rows["people"][index].max() for _, index in members))
    number = sum(kind.number for kind, _ in members)
    sure = all(kind.number == len(kind.candidates) for kind, _ in members)
    choices = [np.unique(original.subject[kind.candidates]) for kind, _ in members]
    if sure:
        people = len(np.unique(np.concatenate(choices)))
        found.determined += 1
    else:
        people = largest([kind.number for kind, _ in members], choices)
    if rules.subject and (people < declared or (sure and people != declared)):
        findings.note("people", [group])
    claimed = min(declared, number) if rules.subject else number
    if people < rules.k <= claimed:  # fewer by their own account were noted before
        findings.note("k_anonymity", [group])
    if rules.subject:
        found.fewest_people = min(found.fewest_people or people, people)
    if sure:
        _exactly(group, members, rows, original, rules, findings, people)
    for model in rules.models:
        if isinstance(model, Guarding) and (sure or number == people):
            breach = _breach(model, members, rows, original, rules, sure)
            found.largest_breach = max(found.largest_breach or 0.0, breach)
            if breach > model.p + SLACK:
                findings.note(model.code, [group], column=model.attribute)
    times = original.times
    if len(times) and times.any():
        for kind, index in members:
            waited = rows["time"][index].max() - times[kind.candidates]
            if (waited >= 0).any():
                least = float(waited[waited >= 0].min()) / 1000
                found.longest_delay = max(found.longest_delay or 0.0, least)


def _exactly(
    group: int,
    members: list[tuple[Kind, Ints]],
    rows: Rows,
    original: Original,
    rules: Rules,
    findings: Findings,
    people: int,
) -> None:
    """Judge the models that count values by people: each person's equal values count once."""
    names = list(rules.sensitive)
    for model in rules.models:
        if not isinstance(model, ValueModel):
            continue
        column = f"s{names.index(model.attribute)}"
        pairs = {
            (int(rows[column][index[0]]), subject)
            for kind, index in members
            for subject in original.subject[kind.candidates].tolist()
        }
        values = np.array([value for value, _ in pairs], dtype=np.int64)
        counts = Counts.of(np.zeros(len(values), dtype=np.int64), values, np.array([people]), once=True)
        if model.failing(counts)[0]:
            findings.note(model.code, [group], column=model.attribute)


def _breach(
    model: Guarding, members: list[tuple[Kind, Ints]], rows: Rows, original: Original, rules: Rules, sure: bool
) -> float:
    """Return a lower bound of the largest chance that somebody's value is placed under their guard."""
    names = list(rules.sensitive)
    column, guards = f"s{names.index(model.attribute)}", original.guards[model.attribute]
    shown = [(kind, original.span(model.attribute, int(rows[column][index[0]]))) for kind, index in members]
    worst = 0.0
    for kind, _ in members:
        if len(kind.candidates):
            spans = np.unique(guards[kind.candidates], axis=0).tolist()
            worst = max(worst, min(_chance(first, last, shown, original, sure) for first, last in spans))
    return worst


def _chance(first: int, last: int, shown: list[tuple[Kind, tuple[int, int]]], original: Original, sure: bool) -> float:
    """Average over the people the share of their published leaves that lie under the guard."""
    if last < first:
        return 0.0
    people: dict[int, float] = {}
    total = number = 0.0
    for kind, (low, high) in shown:
        share = max(min(high, last) - max(low, first) + 1, 0) / max(high - low + 1, 1)
        total, number = total + share * kind.number, number + kind.number
        if sure:
            for subject in original.subject[kind.candidates].tolist():
                people[subject] = max(people.get(subject, 0.0), share)
    return sum(people.values()) / len(people) if sure else total / number
