"""The compiled form of a model: what loops over the counts of values need to know to judge in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

NO_BOUND, NEVER = 2.0, -1.0
"""A share that no value exceeds, and one that every value does."""

SHARES, ENTROPY, RECURSIVE, EQUAL, ORDERED = range(5)
"""How a rule judges the counts of its values."""


class CountRule(NamedTuple):
    """One requirement on the counts of a column's values, judged as `kind` says.

    A group needs `least` different values, and as many as the `demand` of each value present says. `share` is the
    largest share of the people that may have a value, or its share in the whole for t-closeness. `limit` is c, or t,
    or the l of an entropy.
    """

    column: int
    kind: int = SHARES
    least: int = 1
    limit: float = 0.0
    demand: Callable[[int], int] = lambda code: 0
    share: Callable[[int], float] = lambda code: NO_BOUND
