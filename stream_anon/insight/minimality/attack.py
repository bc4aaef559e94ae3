"""Three minimality attackers, and how often each is right about somebody's value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.schema import Schema
from stream_anon.insight.minimality.runs import Replay, Run
from stream_anon.insight.minimality.signs import EVERYBODY, MEMBERS, TARGET, Signs

WORLDS = 24
"""Ways to deal a group's values out that are replayed."""

FEW_WORLDS, FEW_CLAIMS = 3, 30
"""Of fewer possible ways nothing is concluded; a sign seen less often is none."""

CAREFUL = 2.0
"""Of several signs the attacker takes the one that is best if chance was against it, by so many standard deviations."""

REPLAY = "the group would not be made with most other ways to deal out its values"


@dataclass(frozen=True, slots=True)
class Found:
    """What one attacker achieved: claims that a person has a value, and how many of them are right.

    `allowed` is the average, over the claims, of what everybody may believe: the value's share in the group, or 1/l
    if the policy has an l and that is more; `least` is that 1/l, or 0.
    """

    attacker: str
    attribute: str
    sign: str
    claims: int
    right: int
    allowed: float
    least: float = 0.0

    @property
    def posterior(self) -> float:
        """The share of claims that are right."""
        return self.right / self.claims if self.claims else 0.0

    @property
    def spread(self) -> float:
        """The standard deviation of that share."""
        return float(np.sqrt(self.posterior * (1 - self.posterior) / self.claims)) if self.claims else 0.0

    @property
    def gain(self) -> float:
        """How much more often than allowed it is right, at least, if chance was not against it."""
        return (self.posterior - CAREFUL * self.spread) / self.allowed if self.claims else 0.0


class Claims:
    """Claims under one sign, added up."""

    def __init__(self) -> None:
        self.claims = self.right = 0
        self.allowed = 0.0

    def add(self, claims: int, right: int, allowed: float) -> None:
        """Add claims that are all allowed the same."""
        self.claims, self.right, self.allowed = (
            self.claims + claims,
            self.right + right,
            self.allowed + claims * allowed,
        )

    def found(self, attacker: str, attribute: str, sign: str, least: float) -> Found:
        """Return what they come to."""
        return Found(attacker, attribute, sign, self.claims, self.right, self.allowed / max(self.claims, 1), least)


def minimality(
    schema: Schema,
    rows: Batch,
    run: Run,
    blind: Run,
    replays: int = 0,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Found]:
    """Attack every sensitive attribute of a run and return the best that each attacker achieved.

    Everyone claims, of members with a sign, that they have the value that is rarest in their group, or the one that is
    most common there, and keeps to the sign that is right most often: a generous attacker, for signs are chosen with
    the truth at hand. Who knows everybody also replays `replays` groups: how they would have been made, had the same
    values been dealt out otherwise among their members. What depends on the policy's secret is drawn anew each time.
    """
    found = []
    rng = np.random.default_rng(seed)
    signs = Signs(schema, rows, run, blind)
    for column, attribute in enumerate(schema.sensitive):
        values, value = np.unique(rows.sensitive[:, column], return_inverse=True)
        if len(values) < 2:
            continue
        allowed = _allowed(schema, column)
        rarity = np.bincount(value)
        tallies = _by_signs(run, signs, value, rarity, allowed)
        if replays:
            tallies[EVERYBODY, REPLAY] = _by_replay(rows, run, value, allowed, replays, rng, progress)
        for attacker in (EVERYBODY, MEMBERS, TARGET):
            tried = [
                claims.found(attacker, attribute.name, sign, allowed)
                for (who, sign), claims in tallies.items()
                if who == attacker and claims.claims >= FEW_CLAIMS
            ]
            found += [max(tried, key=lambda each: each.gain)] if tried else []
    return found


def _allowed(schema: Schema, column: int) -> float:
    """Return 1/l, for the largest l that the policy asks of a column; 0 if it asks for none."""
    models = [model for model in schema.requirements.models if getattr(model, "column", None) == column]
    return 1.0 / max([float(getattr(model, "l", np.inf)) for model in models if hasattr(model, "l")], default=np.inf)


def _by_signs(run: Run, signs: Signs, value: Ints, rarity: Ints, least: float) -> dict[tuple[str, str], Claims]:
    """Let each sign claim the rarest and the most common value of every group."""
    tallies: dict[tuple[str, str], Claims] = {}
    for group in run.groups:
        own = value[group.members]
        for claimed, what in _extremes(own, rarity):
            has = own == claimed
            allowed = max(least, float(has.mean()))
            for attacker, (sign, mark) in signs.of(group.members, group.left):
                tally = tallies.setdefault((attacker, f"{sign}: {what}"), Claims())
                tally.add(int(mark.sum()), int((mark & has).sum()), allowed)
    return tallies


def _extremes(own: Ints, rarity: Ints) -> Iterator[tuple[int, str]]:
    """Yield the rarest value of a group, by its count there and then everywhere, and the most common one."""
    found, counts = np.unique(own, return_counts=True)
    if len(found) > 1:
        order = np.lexsort((rarity[found], counts))
        yield int(found[order[0]]), "it has the rarest value"
        yield int(found[order[-1]]), "it has the most common value"


def _by_replay(
    rows: Batch,
    run: Run,
    value: Ints,
    least: float,
    replays: int,
    rng: np.random.Generator,
    progress: Callable[[float], None],
) -> Claims:
    """Claim, in each of some groups, what is most surprising of what the possible worlds agree on."""
    several = [i for i, group in enumerate(run.groups) if len(np.unique(value[group.members])) > 1]
    chosen = sorted(rng.permutation(several)[:replays].tolist())
    claims = Claims()
    for done, (number, question) in enumerate(run.replays(chosen)):
        members = run.groups[number].members
        own = value[members]
        chance = _posterior(rows, members, own, question, rng)
        if chance is not None:
            share = np.bincount(own, minlength=chance.shape[1]) / len(own)
            surprise = chance / np.maximum(np.maximum(share, least), 1e-9)
            member, claimed = np.unravel_index(int(np.argmax(surprise)), surprise.shape)
            claims.add(1, int(own[member] == claimed), max(least, float(share[claimed])))
        progress((done + 1) / max(len(chosen), 1))
    return claims


def _posterior(rows: Batch, members: Ints, own: Ints, question: Replay, rng: np.random.Generator) -> Floats | None:
    """Return how likely each member has each value, over the ways to deal them out that give the same group.

    A row's whole sensitive part moves with its value. The rows have other numbers each time, in a partition of their
    own: so whatever the secret decides about them is decided anew, and about nobody else.
    """
    chance, possible = np.zeros((len(own), int(own.max()) + 1)), 0
    for _ in range(WORLDS):
        dealt = rng.permutation(len(members))
        world = rows.take(np.arange(len(rows)))
        for part in (world.sensitive, world.guard, world.psf, world.values):
            part[members] = part[members[dealt]]
        world.ref[members, 0] = int(rng.integers(1, 1 << 14))
        if question(world):
            possible += 1
            chance[np.arange(len(own)), own[dealt]] += 1
    return chance / possible if possible >= FEW_WORLDS else None
