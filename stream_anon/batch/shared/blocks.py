"""Divide a table by quasi-identifiers and people alone; privacy models judge finished blocks and may only refuse."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stream_anon.core.batch import Batch, cut
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.judge import Judge
from stream_anon.core.judging.veto import Veto
from stream_anon.core.kernels import cell_prices
from stream_anon.core.schema import Schema

LARGER, MUCH_LARGER = 1.5, 2.0
"""Blocks are tried in sizes that grow by this factor, by the second while more than half are refused."""

PATIENCE = 2
"""Sizes in a row that lose more than a smaller one did, before no larger one is tried."""


def settled(rows: Batch, schema: Schema, form: Callable[[Judge], list[Ints]], partly: bool = False) -> list[Ints]:
    """Return groups that satisfy the policy, of blocks that `form` makes under a judge of people alone.

    Blocks that are refused are merged whole. Larger blocks are tried as long as that may lose less, for fewer of them
    are refused. If not even all rows together satisfy the policy there are no groups or, `partly`, the blocks that
    happen to be good: then what is left out tells.
    """
    veto = Veto(schema)
    blocks = form(Judge(rows, schema, veto.people))
    if veto.blind or not blocks:
        return _in_order(blocks)
    if not veto.possible(rows, np.arange(len(rows))):
        return _good(rows, blocks, veto) if partly else []
    best, least, people, worse = None, np.inf, float(veto.people), 0
    while blocks and worse < PATIENCE:
        veto = Veto(schema)
        groups, rest = veto.settle(rows, blocks)
        loss = _loss(rows, groups, schema) if rest is None else np.inf
        if best is None and rest is not None:
            break
        best, least, worse = (groups, loss, 0) if loss < least else (best, least, worse + 1)
        people *= MUCH_LARGER if veto.refused > 0.5 else LARGER
        blocks = form(Judge(rows, schema, math.ceil(people))) if len(groups) < len(blocks) else []
    if best is None:
        return _good(rows, blocks, veto) if partly else []
    return _in_order(best)


def _good(rows: Batch, blocks: list[Ints], veto: Veto) -> list[Ints]:
    """Return the blocks that may be published as they are."""
    return _in_order([block for block in blocks if veto.holds(rows, block)])


def _loss(rows: Batch, groups: list[Ints], schema: Schema) -> float:
    """Return what all rows lose together."""
    sizes = np.array([len(group) for group in groups])
    qi, first = rows.qi[np.concatenate(groups)], np.concatenate([[0], np.cumsum(sizes)[:-1]])
    low, high = np.minimum.reduceat(qi, first, axis=0), np.maximum.reduceat(qi, first, axis=0)
    prices = schema.prices
    return float(sizes @ (cell_prices(prices.facts, prices.values, low, high) @ prices.weight))


def _in_order(groups: list[Ints]) -> list[Ints]:
    """Return the groups by their first rows, those of each in ascending order."""
    if not groups:
        return []
    sizes = np.array(list(map(len, groups)))
    rows = np.concatenate(groups)
    first = np.minimum.reduceat(rows, np.concatenate([[0], np.cumsum(sizes)[:-1]]))
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ordered = np.sort(np.repeat(place, sizes) * (int(rows.max()) + 1) + rows) % (int(rows.max()) + 1)
    return cut(ordered, np.cumsum(sizes[order])[:-1].tolist())
