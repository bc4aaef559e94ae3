"""Hierarchies that need no list of values: a position divided by nested units says which step two values share."""

from __future__ import annotations

import numpy as np

from stream_anon.core.hierarchy.base import Floats, Ints


def rung(units: tuple[int, ...], low: Ints, high: Ints) -> Ints:
    """Index of the first unit in which both ends fall into one cell; `len(units)` if none does.

    >>> rung((1, 10, 100), np.array([21, 21, 21, 21]), np.array([21, 29, 99, 121]))
    array([0, 1, 2, 3])
    """
    found = np.full(np.broadcast(low, high).shape, len(units), dtype=np.int64)
    for i in reversed(range(len(units))):
        found = np.where(low // units[i] == high // units[i], i, found)
    return found


def shared(units: tuple[int, ...], low: int, high: int) -> int:
    """Return the same for one pair: labels are made one by one, and arrays of one number cost fifty times as much.

    >>> [shared((1, 10, 100), 21, high) for high in (21, 29, 99, 121)]
    [0, 1, 2, 3]
    """
    for i, unit in enumerate(units):
        if low // unit == high // unit:
            return i
    return len(units)


def ladder_loss(low: Ints, high: Ints, units: tuple[int, ...], levels: tuple[float, ...], top: int) -> Floats:
    """Return the price of the shared step, 1 if there is none; positions from `top` on share nothing."""
    prices = np.array([*levels, 1.0])[rung(units, low, high)]
    return np.where(high >= top, np.where(low == high, 0.0, 1.0), prices)


def span_loss(
    low: Ints, high: Ints, units: tuple[int, ...], slope: float, lowest: int, top: int
) -> tuple[Ints, Ints, Floats]:
    """Widen ends to whole cells of the shared unit (else of the coarsest); also return the price of that width."""
    unit = np.array([*units, units[-1]])[rung(units, low, high)]
    left = np.maximum(low // unit * unit, lowest)
    right = np.minimum(high // unit * unit + (unit - 1), top - 1)
    price = np.minimum((right - left) * slope, 1.0)
    return left, right, np.where(high >= top, np.where(low == high, 0.0, 1.0), price)
