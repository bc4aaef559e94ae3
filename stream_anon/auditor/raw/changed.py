"""Compare changed fields with the raw table: no token is a raw value, and each person's dates moved alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.fields import NO_TIME, ShiftCheck
from stream_anon.auditor.findings import Findings
from stream_anon.auditor.numbers import Rows
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.raw.original import Kind, Original

Ints = npt.NDArray[np.int64]

_DAY = 86_400_000
_SHORT = 6
"""Digits below which a prefix may be a raw value by chance."""


def compare_changes(
    kinds: Sequence[tuple[Kind, Ints]], rows: Rows, original: Original, rules: Rules, findings: Findings
) -> None:
    """Note tokens that are raw values, and shifts beyond their bound or different for one person."""
    for i, name in enumerate(rules.tokens):
        if int(rules.changes[name].spec.get("length", 32)) >= _SHORT:
            shown = (rows[f"t{i}"] != 0) & np.isin(rows[f"t{i}"], original.tokens[name])
            findings.note("raw-value", np.unique(rows["group"][shown]), column=name)
    for i, (name, check) in enumerate(rules.shifts.items()):
        _shifts(f"d{i}", name, check, kinds, rows, original, findings)


def _shifts(
    column: str,
    name: str,
    check: ShiftCheck,
    kinds: Sequence[tuple[Kind, Ints]],
    rows: Rows,
    original: Original,
    findings: Findings,
) -> None:
    """Judge the shifts of one field: each record needs a raw row it was moved from; a sure one tells whose it is."""
    moved: dict[int, int] = {}
    for kind, index in kinds:
        candidates = kind.candidates[original.dates[name][kind.candidates] != NO_TIME]
        for row in index.tolist():
            shown = int(rows[column][row])
            if shown == NO_TIME or not len(kind.candidates):
                continue  # noted before: not a date, or made of no raw row
            far = shown - original.dates[name][candidates]
            fits = (far % _DAY == 0) & (far != 0) & (abs(far) <= check.days * _DAY)
            if not fits.any():
                findings.note("shift", [kind.group], column=name)
            elif fits.sum() == 1:
                person, days = int(original.subject[candidates[fits]][0]), int(far[fits][0]) // _DAY
                if moved.setdefault(person, days) != days:
                    findings.note("shift", [kind.group], column=name)
