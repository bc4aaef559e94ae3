"""One part of a table: divided, counted and measured, wherever its rows come from and its records go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from stream_anon.batch import partition
from stream_anon.core.batch import Batch
from stream_anon.core.gate import Group
from stream_anon.core.hierarchy import Ints
from stream_anon.core.loss.classes import Classes
from stream_anon.core.schema import Schema
from stream_anon.local.anonymize import sums_of
from stream_anon.observe.tally import Tally

Told = Callable[[Sequence[Group]], Mapping[str, Any]]
"""Returns plain data about groups."""


@dataclass(frozen=True)
class Way:
    """How every part of one table is divided; `bins` are those in which the distributions of all are compared.

    `told` is asked what else the figures shall tell of the groups of a part.
    """

    algorithm: str
    options: Mapping[str, Any] | None
    seed: int
    bins: list[list[int]]
    told: Told | None = None


@dataclass(frozen=True)
class DividedPart:
    """The groups of a part by their ids, the places of the rows in none, and counts and sums as plain data."""

    groups: list[Group]
    suppressed: Ints
    figures: dict[str, Any]


def divide_part(rows: Batch | None, schema: Schema, way: Way, given_up: bool) -> DividedPart:
    """Divide the rows of a part; rows without a group count as suppressed if they are `given_up`."""
    tally = Tally([column.name for column in schema.quasi], schema.requirements.k, schema.counts)
    groups: list[Group] = []
    suppressed = np.empty(0, dtype=np.int64)
    if rows is not None and len(rows):
        found = partition(way.algorithm, rows, schema, way.options, way.seed, observed=True)
        groups, suppressed = sorted(found.groups, key=attrgetter("id")), found.suppressed
    if given_up:
        tally.suppress(suppressed)
    tally.publish(groups, 0.0)
    sums = sums_of(schema, way.bins)
    for group in groups[:1]:
        out = group.released
        sums.add(Classes(out.rows.qi, out.rows.sensitive, out.starts, out.low, out.high, out.losses))
    sums.suppress(tally.suppressed)
    figures = tally.figures() | {"sums": sums.figures()} | ({"told": way.told(groups)} if way.told else {})
    return DividedPart(groups, suppressed, figures)
