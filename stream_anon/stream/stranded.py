"""The last resort at the end: rows without a group join groups that have been chosen and have not left yet."""

from __future__ import annotations

import numpy as np

from stream_anon.core.batch import Batch, cut
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.schema import Schema
from stream_anon.stream.algorithm import Chosen

TRIED = 20
"""Groups that a row is tried in, cheapest first, where more may break a group: a search must end."""


def take_in(stranded: Ints, chosen: Chosen, columns: Batch, schema: Schema) -> tuple[Chosen, Ints]:
    """Add the stranded rows to chosen groups that can hold them; return the groups, and the rows that none can hold.

    A row joins the group that costs least with it. Where a policy asks for people and different values alone, more rows
    never break a group; elsewhere every model is asked.
    """
    if not len(stranded) or not chosen.sizes:
        return chosen, stranded
    groups = cut(np.concatenate(chosen.slots), np.cumsum(chosen.sizes)[:-1].tolist())
    low = np.array([columns.qi[group].min(axis=0) for group in groups])
    high = np.array([columns.qi[group].max(axis=0) for group in groups])
    safe, left = schema.requirements.distinct_only is not None, []
    for slot in stranded.tolist():
        point = columns.qi[slot]
        below, above = np.minimum(low, point), np.maximum(high, point)
        size = np.array([len(group) for group in groups])
        added = _price(below, above, schema) * (size + 1) - _price(low, high, schema) * size
        for g in np.argsort(added, kind="stable")[: 1 if safe else TRIED].tolist():
            joined = np.append(groups[g], slot)
            if safe or schema.requirements.holds(columns.take(joined)):
                groups[g], low[g], high[g] = joined, below[g], above[g]
                break
        else:
            left.append(slot)
    return Chosen(groups, [len(group) for group in groups], chosen.reasons), np.array(left, dtype=np.int64)


def _price(low: Ints, high: Ints, schema: Schema) -> Floats:
    """Return what a row loses in each box."""
    lost = [column.weight * column.hierarchy.loss(low[:, q], high[:, q]) for q, column in enumerate(schema.quasi)]
    return np.asarray(np.sum(lost, axis=0), dtype=np.float64)
