"""The intersection attack over repeated visits: who is left when several groups of one person are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.attacks.measured import Measured
from stream_anon.auditor.numbers import Label, Rows
from stream_anon.auditor.raw.original import Original
from stream_anon.auditor.raw.views import View

Ints = npt.NDArray[np.int64]

VISITS = (2, 5, 10, 20)
PEOPLE = 300
"""Tried per number of visits, chosen by chance: enough for a share to the nearest few parts in a hundred."""


def after_visits(
    view: View, rows: Rows, labels: Mapping[int, Label], listed: Original, seed: int = 0
) -> Iterator[Measured]:
    """Measure the share of people who are the only ones on the list to fit n of their own groups.

    The attacker knows which groups hold the person's first n records, by when they came or by a rare value, and strikes
    everybody from the list whose quasi-identifiers do not fit all of them. Who has fewer records is not tried.
    """
    order = np.lexsort((view.row, view.subject))
    order = order[view.row[order] >= 0]
    _, starts, counts = np.unique(view.subject[order], return_index=True, return_counts=True)
    for visits in VISITS:
        tried = starts[counts >= visits]
        if not len(tried):
            return
        tried = tried[
            np.argsort(view.row[order[tried]])
        ]  # by their first record: a person's number differs in each run
        tried = np.random.default_rng(seed).permutation(tried)[:PEOPLE]
        alone = sum(_left(order[start : start + visits], rows, labels, listed) == 1 for start in tried.tolist())
        meaning = f"{visits} known groups of a person leave one person on the list"
        yield Measured("intersection", f"{visits} visits", meaning, len(tried), alone / len(tried))


def _left(records: Ints, rows: Rows, labels: Mapping[int, Label], listed: Original) -> int:
    """Return how many people of the list fit every one of these records."""
    left = np.arange(len(listed))
    for box in np.unique(rows["box"][records]).tolist():
        left = listed.covered(labels[box], left)
    return len(np.unique(listed.subject[left]))
