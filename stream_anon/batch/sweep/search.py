"""What the rounds of improvement work on, and the room they work in: named, so that no kernel takes a row of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stream_anon.batch.shared.classes import Classes
from stream_anon.batch.shared.dense import Dense
from stream_anon.batch.sweep.index import Index
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.judging.need import CompiledRequirements

POOL = 4_096
"""Rows pooled at most."""


class Search(NamedTuple):
    """The rows, the classes they are in, an index of these, and what every class must satisfy."""

    dense: Dense
    classes: Classes
    places: Index
    need: CompiledRequirements


class CutRoom(NamedTuple):
    """Rows to cut, and the room for it: the same rows in the order of a column, losses up to each, a box."""

    rows: Ints
    sorted_rows: Ints
    merged: Ints
    left_loss: Floats
    low: Ints
    high: Ints


class Room(NamedTuple):
    """Arrays that are filled and forgotten again and again.

    `rows` and `spare` hold rows of the classes at hand, `given` counts rows promised by each class, `low` and `high`
    are a box. `sorted_rows`, `merged` and `left_loss` are of a cut, `todo` of its parts; `distance` and `found` of near
    classes.
    """

    rows: Ints
    spare: Ints
    given: Ints
    low: Ints
    high: Ints
    sorted_rows: Ints
    merged: Ints
    left_loss: Floats
    distance: Floats
    found: Ints
    todo: Ints


def room_of(search: Search, near: int) -> Room:
    """Return room for searches among these rows, with `near` classes looked at."""
    n, width = search.dense.code.shape
    return Room(
        np.empty(2 * n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.zeros(len(search.classes.size), dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(width, dtype=np.int64),
        np.empty(POOL, dtype=np.int64),
        np.empty(POOL, dtype=np.int64),
        np.empty(POOL),
        np.empty(near),
        np.empty(near, dtype=np.int64),
        np.empty((POOL, 2), dtype=np.int64),
    )
