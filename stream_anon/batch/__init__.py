"""Batch algorithms, one per file behind one contract. `partition` runs one and passes its groups to the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import ValidationError

from stream_anon.batch.algorithms import ALGORITHMS
from stream_anon.batch.partitioner import Partitioner, Watch, unwatched
from stream_anon.batch.support import check
from stream_anon.core.batch import Batch
from stream_anon.core.gate import Group, Reason, release_all
from stream_anon.core.hierarchy import Ints
from stream_anon.core.schema import Schema
from stream_anon.errors import Unsupported, nearest

__all__ = ["ALGORITHMS", "Partition", "Partitioner", "build", "partition"]


@dataclass(frozen=True, slots=True)
class Partition:
    """The result of dividing a table: groups that passed the gate, the row numbers of each, and the rows in none."""

    groups: list[Group]
    classes: list[Ints]
    suppressed: Ints


def build(name: str, options: Mapping[str, Any] | None = None, seed: int = 0) -> Partitioner:
    """Return the algorithm of that name; raise Unsupported for an unknown name or option."""
    if name not in ALGORITHMS:
        raise Unsupported(f'no batch algorithm is called "{name}"; {nearest(name, list(ALGORITHMS))}')
    try:
        settings = ALGORITHMS[name].settings.model_validate({**(options or {}), "name": name})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Unsupported(f"{name}: option {place}: {first['msg']}") from None
    return ALGORITHMS[name](settings, seed)


def partition(
    name: str,
    rows: Batch,
    schema: Schema,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    watch: Watch = unwatched,
    observed: bool = False,
) -> Partition:
    """Divide rows by an algorithm and release the groups.

    1. Refuse what the algorithm cannot honour.
    2. Show the rows to the models that learn from the whole, unless they are part of one that was `observed`.
    3. Divide.
    4. Release through the gate, which asks every model again.
    """
    algorithm = build(name, options, seed)
    check(name, schema)
    facts = rows.facts
    if not observed:
        schema.requirements.observe(facts)
    classes = algorithm(facts, schema, watch) if len(rows) else []
    suppressed = np.ones(len(rows), dtype=bool)
    if not classes:
        return Partition([], [], np.flatnonzero(suppressed))
    members = np.concatenate(classes)
    suppressed[members] = False
    sizes = [len(index) for index in classes]
    groups = release_all(rows, members, sizes, schema, [Reason.BATCH] * len(classes))
    return Partition(groups, classes, np.flatnonzero(suppressed))
