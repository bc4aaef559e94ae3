"""Divide a table by quasi-identifiers and people alone; privacy models judge finished blocks and may only refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Ints
from stream_anon.core.judging.judge import Judge
from stream_anon.core.judging.veto import Veto
from stream_anon.core.schema import Schema


def settled(rows: Batch, schema: Schema, form: Callable[[Judge], list[Ints]], partly: bool = False) -> list[Ints]:
    """Return groups that satisfy the policy, of blocks that `form` makes under a judge of people alone.

    Blocks that are refused are merged whole; larger ones are made if too many are. If not even all rows together
    satisfy the policy there are no groups or, `partly`, the blocks that happen to be good: then what is left out tells.
    """
    veto = Veto(schema)
    blocks = form(Judge(rows, schema, veto.people))
    if veto.blind or not blocks:
        return _in_order(blocks)
    groups: list[Ints] = []
    if veto.possible(rows):
        while veto.enlarge(rows, blocks) and (larger := form(Judge(rows, schema, veto.people))):
            blocks = larger
        groups, rest = veto.settle(rows, blocks)
        if rest is None:
            return _in_order(groups)
    return _in_order([block for block in blocks if veto.holds(rows, block)]) if partly else []


def _in_order(groups: list[Ints]) -> list[Ints]:
    """Return the groups by their first rows."""
    return sorted((np.sort(group) for group in groups), key=lambda group: int(group[0]))
