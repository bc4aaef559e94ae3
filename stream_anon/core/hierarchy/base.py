"""The contract of every hierarchy: values become positions on a line, and stretches of it have a price and a name.

A value is a point, a generalization is the stretch `[low, high]` that holds its points. Numbers are their own
positions; the leaves of a tree are numbered in tree order, so that every subtree is one stretch too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MISSING_LABEL = "(missing)"
UNKNOWN_LABEL = "(unknown)"


class Trouble(IntEnum):
    """Why a value has no place in a hierarchy."""

    NONE = 0
    MISSING = 1
    UNKNOWN = 2


@dataclass(frozen=True, slots=True)
class Leaves:
    """Which kinds of absence are values of their own; the others are refused."""

    missing: bool = False
    unknown: bool = False

    def labels(self) -> list[str]:
        """Return the labels of these extra leaves, in the order of their positions."""
        return [MISSING_LABEL] * self.missing + [UNKNOWN_LABEL] * self.unknown

    def label(self, position: int, top: int) -> str:
        """Return the label of the extra leaf at a position when these leaves start at `top`."""
        return self.labels()[position - top]

    def position(self, trouble: Trouble, top: int) -> int | None:
        """Return the position of an absence when the extra leaves start at `top`; None if it is to be refused."""
        if trouble is Trouble.MISSING:
            return top if self.missing else None
        return top + self.missing if self.unknown else None


class Kind(IntEnum):
    """The structure by which a kernel looks up what a stretch costs."""

    TABLE = 0  # a square table, for small trees and short ladders
    PEAKS = 1  # a sparse table of maxima, for large trees
    LADDER = 2  # integer division by nested units, for codes, instants and numbers on a grid
    LINEAR = 3  # the width, for numbers without a grid


@dataclass(frozen=True, slots=True)
class CostTable:
    """What a kernel needs to price any stretch of one hierarchy. Field by field the inputs of `kernels.cost`."""

    kind: Kind
    size: int = 0
    values: Floats = field(default_factory=lambda: np.zeros(1))
    units: tuple[int, ...] = (1,)
    levels: tuple[float, ...] = (0.0,)
    slope: float = 0.0
    lowest: int = 0
    highest: int = 0
    least: float = 0.0  # what two different values cost at the least


class Hierarchy(Protocol):
    """Encode values, price and label stretches. Immutable once made; every method is a pure function."""

    def encode(self, values: Sequence[Any]) -> tuple[Ints, Ints | None]:
        """Positions of the values, and per value the `Trouble` that keeps it out, or None if all have a place."""
        ...

    def loss(self, low: Ints, high: Ints) -> Floats:
        """Return the share of information lost by each stretch: 0 for a single value, 1 for everything."""
        ...

    def label(self, low: int, high: int) -> Any:
        """How the stretch is published: text, or a pair of numbers."""
        ...

    def contains(self, label: Any, value: Any) -> bool:
        """Whether a published label still covers a value: what a reader may rely on."""
        ...

    def cost_table(self) -> CostTable:
        """Return the same prices as `loss`, for kernels."""
        ...

    def signature(self) -> str:
        """Text that changes whenever any position, price or label would."""
        ...


def encode_each(
    values: Sequence[Any], position: Callable[[Any], int | None], leaves: Leaves, top: int
) -> tuple[Ints, Ints | None]:
    """Encode one by one: the careful way, taken only when the fast way met something odd. Empty text is missing."""
    codes = np.zeros(len(values), dtype=np.int64)
    trouble = np.zeros(len(values), dtype=np.int64)
    for i, value in enumerate(values):
        kind = Trouble.MISSING if value is None or value == "" else Trouble.NONE
        code = None
        if kind is Trouble.NONE:
            code = position(value)
            kind = Trouble.UNKNOWN if code is None else Trouble.NONE
        if kind is not Trouble.NONE:
            code = leaves.position(kind, top)
            if code is None:
                trouble[i] = kind
        codes[i] = 0 if code is None else code
    return codes, trouble if trouble.any() else None
