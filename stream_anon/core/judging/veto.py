"""The veto: privacy models judge finished blocks and may only say no; a refused block is merged, whole, with another.

Blocks are formed by quasi-identifiers and people alone, so that who knows those cannot read a sensitive value out of
who was put together. What is left to read is *that* blocks were merged: it would tell that one of them was refused.

1. Where that tells too much, blocks are merged in pairs that are formed beforehand, by quasi-identifiers: then it is
   not told which of the two was refused. Where it is harmless, a refused block is merged with the one that adds least.
2. Blocks that could leave at once, by themselves, do so unless refused; so some others are kept back as well, picked by
   a keyed hash of their members, as many as make waiting no proof. If many are refused, all are kept back; and such
   blocks get more people, for alike rows cost little, until few are refused.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch, identities
from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.core.judging.counting import satisfied_by
from stream_anon.core.judging.judge import Judge
from stream_anon.core.judging.pairing import boxes_of, nearest_box, pair_up
from stream_anon.core.judging.regions import regions
from stream_anon.core.judging.sizes import BlockSize
from stream_anon.core.privacy import PrivacyModel, SensitiveModel
from stream_anon.core.schema import Schema

Flags = npt.NDArray[np.bool_]

SURER = 0.2
"""A merge may make a value this much more likely than the policy and the group itself make it."""

MOST_DECOYS = 0.3
"""Blocks kept back without need, at most."""

MEMORY = 400
"""Blocks over which the share of refused ones is averaged."""

MANY = 5_000
"""Blocks among which one looks for its nearest, or pairs are formed: of more, each region by itself."""

OFTEN = 0.2
"""Where more blocks than these are refused, none leaves by itself: good ones would take along what the others lack."""


LONE, LONE_REFUSED = 4, (0.01, 0.03)
"""Blocks that could leave by themselves grow up to so many times the people that a block must have, until no more than
these shares of them are refused: alike rows cost little, and merging them costs much."""

POOLED, POOLED_REFUSED = 32, (0.12, 0.3)
"""The same for blocks that leave together, whose rows are less alike: in between, a smaller block and a merge now and
then lose less than a larger one."""


class Veto:
    """The judgement of finished blocks under one policy.

    `people` is how many people a block must have; `lone` is the size of blocks that could leave by themselves, `pooled`
    that of those which leave together. What is learned from judging blocks takes effect when `heed` is called, so that
    nothing depends on how rows are brought.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        models = schema.requirements.models
        self.people = max([1, *(model.people for model in models)])
        self._models = [model for model in models if not model.blind]
        self.lone = BlockSize(self.people, LONE * self.people, LONE_REFUSED)
        self.pooled = BlockSize(self.people, POOLED * self.people, POOLED_REFUSED)
        self._judged = self._refused = 0.0
        self._lone_share = 0.0
        self._decoys, self._all_wait = 0.0, False
        self._sure: dict[int, float] = {}
        self._telling: dict[int, float] = {}

    @property
    def blind(self) -> bool:
        """Whether people alone decide: then a block that has enough of them is never refused."""
        return not self._models

    @property
    def refused(self) -> float:
        """The share of blocks that were refused, of late."""
        return self._refused / self._judged if self._judged else 0.0

    def heed(self) -> None:
        """Act from now on upon what was learned: who is kept back, and how large lone blocks are."""
        self._decoys, self._all_wait = min(self._wanted(), MOST_DECOYS), self._refused > OFTEN * self._judged
        self.lone.heed()
        self.pooled.heed()

    def settle(self, rows: Batch, blocks: list[Ints], doubtful: int = 0) -> tuple[list[Ints], Ints | None]:
        """Return groups that may leave, and the rows that may not, if the blocks cannot all be merged into good ones.

        The last `doubtful` blocks were refused before: they are merged in any case, and not counted again.
        """
        if not blocks:
            return [], None
        sizes = np.array([len(block) for block in blocks])
        order = np.concatenate(blocks)
        judge = Judge(_light(rows, order), self._schema)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        good = judge.each(starts)
        fresh = len(blocks) - doubtful
        refused = ~good
        refused[fresh:] = True
        if self._models and fresh:
            self._note(rows.sensitive[order[: starts[fresh]]], starts[: fresh + 1], good[:fresh])
            self.pooled.note(fresh, int(np.count_nonzero(~good[:fresh])))
        if not refused.any():
            return blocks, None
        parts, rest = self._merge_by_regions(rows.qi[order], starts, refused, judge)
        return [order[part] for part in parts], None if rest is None else order[rest]

    def possible(self, rows: Batch, index: Ints) -> bool:
        """Tell whether these rows together satisfy what is counted: if not, no division of them does.

        The models are convex: what holds for each part of some rows holds for all of them.
        """
        need = Judge(_light(rows, index), self._schema).need
        return satisfied_by(need, np.arange(len(index), dtype=np.int64))

    def holds(self, rows: Batch, block: Ints) -> bool:
        """Tell whether these rows may leave together."""
        light = _light(rows, block)
        return Judge(light, self._schema).holds(np.arange(len(block)))

    def passes(self, rows: Batch, blocks: list[Ints]) -> Flags:
        """Tell which of the blocks may leave as they are; the others, decoys among them, must wait to be merged."""
        if not self._models or not blocks:
            return np.ones(len(blocks), dtype=np.bool_)
        order = np.concatenate(blocks)
        starts = np.concatenate([[0], np.cumsum([len(block) for block in blocks])])
        good = Judge(_light(rows, order), self._schema).each(starts)
        self._note(rows.sensitive[order], starts, good)
        bad, fade = int(np.count_nonzero(~good)), 0.5 ** (len(blocks) / MEMORY)
        self.lone.note(len(blocks), bad)
        self._lone_share = fade * self._lone_share + (1 - fade) * bad / len(blocks)
        if self._all_wait:
            return np.zeros(len(blocks), dtype=np.bool_)
        return np.asarray(good & ~self._pick_decoys(rows.ref[order], starts))

    def _merge_by_regions(self, qi: Ints, starts: Ints, refused: Flags, judge: Judge) -> tuple[list[Ints], Ints | None]:
        """Merge refused blocks within regions; what a region cannot place goes to the next one, as a refused block."""
        blocks = [np.arange(*ends) for ends in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
        groups: list[Ints] = []
        rest: Ints | None = None
        merge = self._merge_in_pairs if self._telltale() else self._merge
        for region in regions(self._schema.prices, qi[starts[:-1]], MANY):
            parts, flags = [blocks[b] for b in region.tolist()], refused[region]
            if rest is not None:
                parts, flags = [*parts, rest], np.append(flags, True)
            made, rest = merge(qi, parts, flags, judge)
            groups += made
        while rest is not None and groups:  # a part of the last region alone: it takes in others until it may leave
            made, rest = self._merge(
                qi, [*groups[-MANY:], rest], np.arange(len(groups[-MANY:]) + 1) >= len(groups[-MANY:]), judge
            )
            groups = groups[:-MANY] + made
        return groups, rest

    def _merge(self, qi: Ints, blocks: list[Ints], refused: Flags, judge: Judge) -> tuple[list[Ints], Ints | None]:
        """Merge refused blocks, each with the one that adds least, until none is refused or one holds everything."""
        prices = self._schema.prices
        boxes = boxes_of(prices, qi, blocks)
        low, high, size, cost = boxes
        parts: list[Ints | None] = [*blocks]
        waiting = np.flatnonzero(refused).tolist()
        alive = len(parts)
        while waiting:
            block = waiting.pop(0)
            part = parts[block]
            if part is None:
                continue
            if alive == 1:  # one that was picked as a decoy may leave all the same: there is nothing to merge it with
                return ([part], None) if judge.holds(part) else ([], part)
            other, union = nearest_box(prices, boxes, block)
            joined = parts[other]
            assert joined is not None  # noqa: S101 - a block without rows is never the nearest
            low[other] = np.minimum(low[other], low[block])
            high[other] = np.maximum(high[other], high[block])
            size[other] += size[block]
            size[block], cost[other] = 0, union
            parts[other], parts[block] = np.concatenate([joined, part]), None
            alive -= 1
            if not judge.holds(np.concatenate([joined, part])):
                waiting.append(other)
            elif refused[other]:
                waiting = [place for place in waiting if place != other]
        return [part for part in parts if part is not None], None

    def _merge_in_pairs(
        self, qi: Ints, blocks: list[Ints], refused: Flags, judge: Judge
    ) -> tuple[list[Ints], Ints | None]:
        """Pair all blocks by their boxes; merge both of a pair if one is refused; then pair the pairs, and so on.

        Who is paired with whom does not depend on values, so that a merge tells that one of the two was refused, and
        not which: each member has a value as likely as it is frequent in the group.
        """
        nodes: list[tuple[Ints, list[Ints]]] = [
            (block, [] if bad else [block]) for block, bad in zip(blocks, refused.tolist(), strict=True)
        ]
        while len(nodes) > 1 and not all(groups for _, groups in nodes):
            joined = []
            for team in self._teams(qi, [rows for rows, _ in nodes]):
                rows = np.concatenate([nodes[i][0] for i in team])
                groups = [group for i in team for group in nodes[i][1]]
                if not all(nodes[i][1] for i in team):
                    groups = [rows] if judge.holds(rows) else []
                joined.append((rows, groups))
            nodes = joined
        settled = [group for _, groups in nodes for group in groups]
        if settled:
            return settled, None
        rows = nodes[0][0]
        return ([rows], None) if judge.holds(rows) else ([], rows)  # a decoy that has nobody to be merged with leaves

    def _teams(self, qi: Ints, blocks: list[Ints]) -> list[list[int]]:
        """Pair every block, the nearest pairs first; one that is left over goes with the last pair."""
        partner = pair_up(self._schema.prices, boxes_of(self._schema.prices, qi, blocks)).tolist()
        teams = [[block, other] for block, other in enumerate(partner) if other > block]
        teams[-1] += [block for block, other in enumerate(partner) if other < 0]
        return teams

    def _pick_decoys(self, ref: Ints, starts: Ints) -> Flags:
        """Choose blocks by a keyed hash of their members: the same for the same members, and known to nobody else."""
        share = self._decoys
        chosen = np.zeros(len(starts) - 1, dtype=np.bool_)
        if share <= 0.0:
            return chosen
        limit, names, key = int(share * 2**64), identities(ref), self._schema.keys.group
        for b in range(len(chosen)):
            text = np.sort(names[starts[b] : starts[b + 1]]).tobytes()
            digest = hashlib.blake2b(text, key=key, digest_size=8, person=b"decoy").digest()
            chosen[b] = int.from_bytes(digest, "little") < limit
        return chosen

    def _note(self, sensitive: Ints, starts: Ints, good: Flags) -> None:
        """Add to the averages: refusals, and how common the most common value is, everywhere and in refused blocks."""
        fade = 0.5 ** (len(good) / MEMORY)
        self._judged = fade * self._judged + len(good)
        self._refused = fade * self._refused + float(np.count_nonzero(~good))
        for model in self._models:
            if isinstance(model, SensitiveModel):
                everywhere, within = top_shares(sensitive[:, model.column], starts)
                before = self._sure.get(model.column, everywhere)
                self._sure[model.column] = fade * before + (1 - fade) * everywhere
                self._telling[model.column] = fade * self._telling.get(model.column, 0.0) + float(within[~good].sum())

    def _telltale(self) -> bool:
        """Tell whether who knows which block was refused would be `SURER` of a value than the policy allows."""
        return any(model.certainty() == 0.0 or self._proof(model) < 1.0 for model in self._models)

    def _proof(self, model: PrivacyModel) -> float:
        """Return how likely a merge may be to come from the refusal of a certain block; at 1, a refusal is harmless."""
        column = model.column if isinstance(model, SensitiveModel) else -1
        sure = min(max(model.certainty(), self._sure.get(column, 0.0)), 1.0)
        told = self._telling[column] / self._refused if self._refused and column in self._telling else 1.0
        return SURER * sure / max(told - sure, 1e-9)

    def _wanted(self) -> float:
        """Return the share of decoys after which a merge makes no value `SURER` than it is by itself.

        A merge comes from a refusal, and then a member has the most common value as often as in refused blocks; or from
        a decoy, and then as often as anywhere. Both together may be `SURER` than anywhere.
        """
        share = self._lone_share
        return max([0.0, *(share * (1.0 / max(self._proof(model), 1e-9) - 1.0) for model in self._models)])


def top_shares(values: Ints, starts: Ints) -> tuple[float, Floats]:
    """Return the share of the most common value among all, and in each block the share of its own most common one.

    >>> top_shares(np.array([7, 7, 9, 8, 8, 8]), np.array([0, 3, 6]))
    (0.5, array([0.66666667, 1.        ]))
    """
    found, code = np.unique(values, return_inverse=True)
    size = np.diff(starts)
    block = np.repeat(np.arange(len(size)), size)
    pairs, counts = np.unique(block * len(found) + code, return_counts=True)
    within = np.zeros(len(size))
    np.maximum.at(within, pairs // len(found), counts)
    return float(np.bincount(code).max() / len(code)), within / size


def _light(rows: Batch, index: Ints) -> Batch:
    """Return what models look at of some rows, without what is published unchanged."""
    return Batch(
        qi=rows.qi[index],
        sensitive=rows.sensitive[index],
        guard=rows.guard[index],
        psf=rows.psf[index],
        subject=rows.subject[index],
        arrived=rows.arrived[index],
        ref=rows.ref[index],
        serial=rows.serial[index],
        values=np.empty((len(index), 0), dtype=object),
    )
