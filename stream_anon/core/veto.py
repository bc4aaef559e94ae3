"""The veto: privacy models judge finished blocks and may only say no; a refused block is merged whole with its nearest.

Blocks are formed by quasi-identifiers and people alone, so that nobody who knows those can read a sensitive value out
of who was put together. What is left to read is *that* blocks were merged: it would tell that one of them was refused.
Therefore some blocks are merged without need, decided by a keyed hash of their members, as many as it takes to make a
merge no proof; and where that would be too many, blocks are made larger from the start.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch, identities
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.kernels import Prices, compiled, inner, price
from stream_anon.core.privacy import Requirements
from stream_anon.core.schema import Schema

Flags = npt.NDArray[np.bool_]

SURER = 0.2
"""A merge may make somebody's value this much more likely than the policy and the group itself make it."""

MOST_DECOYS = 0.3
"""Blocks merged without need, at most; if more were needed, blocks are made larger instead."""

MEMORY = 500
"""Blocks over which the share of refused ones is averaged."""


class Veto:
    """The judgement of finished blocks under one policy; `people` is how many people a block should have."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._requirements: Requirements = schema.requirements
        self.people = schema.requirements.k
        self._blind = all(model.about_people for model in schema.requirements.models)
        self._refused = 0.0
        self._judged = 0.0

    def settle(self, rows: Batch, blocks: list[Ints], doubtful: int = 0) -> tuple[list[Ints], Ints | None]:
        """Return blocks that may leave, and the rows of one that may not, if there is such a rest.

        The last `doubtful` blocks have been refused before and are merged in any case.
        """
        raise NotImplementedError
