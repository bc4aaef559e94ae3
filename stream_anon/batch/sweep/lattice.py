"""The lattice of level vectors in the order of the walk, with a name for every cell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from stream_anon.batch.shared.dense import Dense
from stream_anon.batch.shared.levels import cell_loss, geometric, is_number, levels_of
from stream_anon.batch.sweep.settings import SweepSettings
from stream_anon.core.hierarchy import Floats, Hierarchy, Ints

NAMES = 2**56
"""Names are drawn below this: the sum of one per column still fits 64 bits for 127 columns."""


class Lattice(NamedTuple):
    """The names of cells: code c of column q lies, at level h, in the cell `name[base[q] + h * kinds[q] + c]`.

    A row's class under a vector is the sum of its cells' names. Names are random, so two classes are taken for one
    with a chance of 2^-50 or so, and that does no harm: what is joined is judged and priced as it is.
    """

    name: Ints
    base: Ints
    kinds: Ints
    depth: Ints
    vectors: Ints


def lattice_of(
    dense: Dense, hierarchies: Sequence[Hierarchy], settings: SweepSettings, rng: np.random.Generator
) -> Lattice:
    """Build levels, names and vectors for the columns in their dense order."""
    names, base, depth, used = [], [], [], 0
    losses: list[Floats] = []
    for q, hierarchy in enumerate(hierarchies):
        points = dense.points(q)
        cells, _ = levels_of(hierarchy, points, geometric(points, settings.steps))
        present = np.bincount(dense.code[:, q], minlength=len(points)) / len(dense.code)
        share = float(dense.weight[q]) * (settings.gentle if is_number(hierarchy) else 1.0)
        losses.append(np.array([share * float(cell_loss(hierarchy, points, row) @ present) for row in cells]))
        names += [rng.integers(1, NAMES, row.max() + 1)[row] for row in cells]
        base.append(used)
        depth.append(len(cells))
        used += cells.size
    return Lattice(
        name=np.concatenate(names).astype(np.int64),
        base=np.array(base, dtype=np.int64),
        kinds=dense.kinds,
        depth=np.array(depth, dtype=np.int64),
        vectors=_vectors(losses, settings.most, rng),
    )


def _vectors(losses: Sequence[Floats], most: int, rng: np.random.Generator) -> Ints:
    """Return all level vectors by average loss; of more than `most`, those on random cheap paths to the top."""
    if np.prod([float(len(loss)) for loss in losses]) <= most:
        vectors = np.array(list(product(*[range(len(loss)) for loss in losses])), dtype=np.int64)
    else:
        vectors = _chains(losses, most, rng)
    total = sum(loss[vectors[:, q]] for q, loss in enumerate(losses))
    return np.ascontiguousarray(vectors[np.argsort(total, kind="stable")])


def _chains(losses: Sequence[Floats], most: int, rng: np.random.Generator) -> Ints:
    """Return random paths to the top; each raises what is cheap to raise, by prices drawn anew for it."""
    steps = [np.append(np.diff(loss), np.inf) for loss in losses]
    tops = [len(loss) - 1 for loss in losses]
    seen: dict[tuple[int, ...], None] = {}
    barren = 0
    while len(seen) < most and barren < most:
        before, at = len(seen), [0] * len(losses)
        seen[tuple(at)] = None
        price = rng.exponential(size=len(losses))
        while at != tops:
            cost = [step[a] * p * rng.exponential() for step, a, p in zip(steps, at, price, strict=True)]
            at[int(np.argmin(cost))] += 1
            seen[tuple(at)] = None
        barren = 0 if len(seen) > before else barren + 1
    return np.array(list(seen), dtype=np.int64)
