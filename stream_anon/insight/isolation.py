"""The isolation attack: forge input records around a victim, and run the policy's own stream algorithm on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.gate import Group
from stream_anon.core.schema import Schema
from stream_anon.local.simulation import Simulation

AT_ONCE = 2_000
"""Rows simulated between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The number of victims published, and of those in groups of only themselves and forged records."""

    tried: int
    isolated: int
    forged: int

    @property
    def share(self) -> float:
        """The share of victims who were isolated."""
        return self.isolated / self.tried if self.tried else 0.0


def isolate(
    schema: Schema,
    rows: Batch,
    victims: int,
    rate: float,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> Isolation:
    """Simulate the attack: records arrive at `rate` a second; with each victim's come k - 1 forged look-alikes.

    The attacker knows the victim's quasi-identifiers and when the record comes, and makes up k - 1 people with as many
    different sensitive values as there are. What is left in the victim's group when the forged records are struck out
    is the victim's alone, if nobody else is in it. Forged records just before, and just behind: the better counts.
    """
    return max(
        (_isolate(schema, rows, victims, rate, seed, first, progress) for first in (True, False)),
        key=lambda found: found.share,
    )


def _isolate(
    schema: Schema, rows: Batch, victims: int, rate: float, seed: int, first: bool, progress: Callable[[float], None]
) -> Isolation:
    """Run the attack once; with `first`, the forged records come before the victim's."""
    k, rng, n = schema.requirements.k, np.random.default_rng(seed), len(rows)
    chosen = np.sort(rng.permutation(n)[: min(victims, n)])
    copies = np.ones(n, dtype=np.int64)
    copies[chosen] = k
    origin = np.repeat(np.arange(n), copies)
    forged = np.zeros(len(origin), dtype=np.bool_)
    same = origin[1:] == origin[:-1]
    forged[slice(None, -1) if first else slice(1, None)] = same
    stream = rows.take(origin)
    _, kinds = np.unique(rows.sensitive, axis=0, return_index=True)
    draws = [rng.permutation(np.resize(kinds, max(len(kinds), k - 1)))[: k - 1] for _ in chosen]
    borrowed = np.concatenate(draws) if draws else np.empty(0, dtype=np.int64)
    stream.sensitive[forged], stream.values[forged] = rows.sensitive[borrowed], rows.values[borrowed]
    stream.guard[forged], stream.psf[forged] = rows.guard[borrowed], rows.psf[borrowed]
    stream.subject[forged] = rng.integers(-(2**62), 2**62, int(forged.sum()))  # nobody else's
    stream.ref[:, 0], stream.ref[:, 1] = 0, np.arange(len(stream))
    groups: list[Group] = []
    simulation = Simulation(schema, groups.extend)
    for start in range(0, len(stream), AT_ONCE):
        part = np.arange(start, min(start + AT_ONCE, len(stream)))
        simulation.push(stream.take(part), origin[part] / rate)
        progress(part[-1] / len(stream))
    simulation.finish()
    victim = np.isin(origin, chosen) & ~forged
    tried = alone = 0
    for group in groups:
        members = group.members[:, 1]
        found = members[victim[members]]
        tried += len(found)
        others = members[~forged[members]]
        alone += len(found) if len(found) and len(np.unique(stream.subject[others])) == 1 else 0
    return Isolation(tried, alone, int(forged.sum()))
