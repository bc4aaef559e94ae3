"""The deFinetti attack: learn from all groups how sensitive values go with quasi-identifiers, then guess within each.

After Kifer, "Attacks on privacy and deFinetti's theorem" (2009): l-diverse groups do not reveal who has which value,
but thousands of them together reveal which kind of person has it, and that narrows it down within each.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.attacks.measured import Measured
from stream_anon.auditor.policy import Rules
from stream_anon.auditor.raw.original import Original
from stream_anon.auditor.raw.views import View

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROUNDS, BALANCES = 15, 5
"""Rounds of learning and guessing, and rounds within each that make a group's guesses add up to what it published."""

BINS, MOST = 12, 200
"""Steps into which a quasi-identifier of many values is divided; an attribute of more values is not guessed."""


def learned(view: View, original: Original, rules: Rules) -> Iterator[Measured]:
    """Measure how often each sensitive attribute is guessed, beside the baseline of each group's most common value.

    The attacker knows who is in which group, with exact quasi-identifiers, and the values that each group published.
    """
    index = np.flatnonzero(view.row >= 0)
    rows = view.row[index]
    features = [_steps(original.places[name][rows]) for name in rules.quasi]
    _, group = np.unique(view.alike[index], return_inverse=True)
    for name in rules.sensitive:
        values, value = np.unique(view.values[name][index], return_inverse=True)
        if not 2 <= len(values) <= MOST:
            continue
        guess = guesses(features, group, value, len(values))
        counts = np.zeros((int(group.max()) + 1, len(values)))
        np.add.at(counts, (group, value), 1)
        most = counts.max(axis=1) / counts.sum(axis=1)
        meaning = "the value of a record is guessed within its group, by what all groups together teach"
        right = float((guess == value).mean())
        yield Measured("deFinetti", name, meaning, len(index), right, float(most[group].mean()))


def guesses(features: list[Ints], group: Ints, value: Ints, values: int) -> Ints:
    """Return the most likely value of each person, given the values of their group in no order."""
    counts = np.zeros((int(group.max()) + 1, values))
    np.add.at(counts, (group, value), 1)
    chance = (counts / counts.sum(axis=1, keepdims=True))[group]
    for _ in range(ROUNDS):
        score = np.zeros_like(chance)
        for feature in features:
            seen = np.ones((int(feature.max()) + 1, values))  # one more of each: what was not seen is not impossible
            np.add.at(seen, feature, chance)
            score += np.log(seen / seen.sum(axis=0))[feature]
        prior = counts[group]
        chance = np.where(prior > 0, np.exp(score - score.max(axis=1, keepdims=True)), 0.0) + 1e-12 * (prior > 0)
        chance = _balanced(chance, group, counts)
    return np.asarray(chance.argmax(axis=1))


def _balanced(chance: Floats, group: Ints, counts: Floats) -> Floats:
    """Scale the guesses so that each person's add up to one and each group's to the values it published."""
    for _ in range(BALANCES):
        sums = np.zeros_like(counts)
        np.add.at(sums, group, chance)
        chance = chance * np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)[group]
        chance /= np.maximum(chance.sum(axis=1, keepdims=True), 1e-300)
    return chance


def _steps(places: Floats) -> Ints:
    """Return the values of a quasi-identifier as numbers; if there are many, as bins of equal shares of the records."""
    known, which = np.unique(np.nan_to_num(places, nan=-1.0, posinf=1e18, neginf=-1e18), return_inverse=True)
    which = which.ravel()
    if len(known) <= 4 * BINS:
        return np.asarray(which, dtype=np.int64)
    ends = np.quantile(which, np.linspace(0, 1, BINS + 1)[1:-1])
    return np.asarray(np.searchsorted(ends, which), dtype=np.int64)
