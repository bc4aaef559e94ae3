"""The composition attack: intersect the two groups of a record that was published twice, in different groupings."""

from __future__ import annotations

import numpy as np

from stream_anon.auditor.attacks.measured import Measured
from stream_anon.auditor.raw.views import View


def composed(first: View, second: View, k: int, who: str) -> Measured:
    """Return the share of records in both outputs whose two groups have fewer than k people in common.

    The attacker recognises a record in both outputs, by what is published unchanged, and knows who is in which group,
    as from a register of those present.
    """
    crowds = [_crowds(first), _crowds(second)]
    places = [{row: i for i, row in enumerate(view.row.tolist()) if row >= 0} for view in (first, second)]
    both = [(places[0][row], places[1][row]) for row in places[0].keys() & places[1].keys()]
    few = sum(len(crowds[0][int(first.alike[i])] & crowds[1][int(second.alike[j])]) < k for i, j in both)
    meaning = f"fewer than {k} {who} are in both groups of a record that was published twice"
    return Measured("composition", "", meaning, len(both), few / len(both) if both else 0.0)


def _crowds(view: View) -> dict[int, set[int]]:
    """Return the people of each class."""
    pairs = np.unique(np.stack([view.alike, view.subject], axis=1), axis=0)
    found: dict[int, set[int]] = {}
    for alike, subject in pairs.tolist():
        found.setdefault(alike, set()).add(subject)
    return found
