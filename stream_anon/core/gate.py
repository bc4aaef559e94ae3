"""The gate. `release` is the only way to a `Group`; it asks every privacy model first and cannot be switched off."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from stream_anon.core import publish
from stream_anon.core.batch import Batch, Objects, identities
from stream_anon.core.hierarchy import Floats, Ints, ValueSet
from stream_anon.core.kernels import cell_prices
from stream_anon.core.privacy.base import distinct, distinct_each
from stream_anon.core.record_template import Envelope
from stream_anon.core.schema import Schema
from stream_anon.errors import PrivacyViolation

_SEAL = object()


class Reason(StrEnum):
    """Why a group left now."""

    READY = "ready"
    DEADLINE = "deadline"
    FLUSH = "flush"
    REUSED = "reused"
    BATCH = "batch"


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Groups that passed the gate together: group g holds the rows from `starts[g]` up to `starts[g + 1]`.

    `rows` are as they arrived, in the published order; `shown` are their sensitive codes as published, some of them
    raised to ancestors, and `values` what is published beside the labels; `members` are their refs, in ascending order
    within a group. The other columns have an entry per group; `told` is its loss as it is published. `earlier` are rows
    published before under the same id, if the only group here adds to it.
    """

    schema: Schema = field(repr=False)
    rows: Batch
    shown: Ints = field(repr=False)
    values: Objects = field(repr=False)
    members: Ints = field(repr=False)
    starts: list[int]
    ids: list[str]
    low: Ints = field(repr=False)
    high: Ints = field(repr=False)
    losses: Floats = field(repr=False)
    loss: list[float]
    told: list[float]
    people: list[int]
    reasons: Sequence[Reason]
    seal: InitVar[object]
    earlier: Batch | None = None

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise PrivacyViolation("a group was made without passing the gate")

    def envelope(self, g: int) -> Envelope:
        """Return what the records of a group tell of it."""
        before = 0 if self.earlier is None else len(self.earlier)
        size = before + self.starts[g + 1] - self.starts[g]
        people = self.people[g] if self.schema.subject else None
        return Envelope(self.ids[g], before, size, people, self.told[g])


@dataclass(slots=True, eq=False, repr=False)
class Group:
    """Rows that satisfy the policy together, and what is published of them: one place among those `released` with it.

    `losses` are the shares of information lost per quasi-identifier, `loss` is their weighted sum, 0 to 1. Id, order,
    labels and so every byte of the records are functions of the members, the policy and the secret: the same members
    give the same records again.
    """

    released: Released
    place: int

    def __post_init__(self) -> None:
        if type(self.released) is not Released:
            raise PrivacyViolation("a group was made without passing the gate")

    def __repr__(self) -> str:
        return f"<Group of {len(self)} rows, {self.people} {self.schema.counts}, {self.reason}>"

    def __len__(self) -> int:
        return self.released.starts[self.place + 1] - self.released.starts[self.place]

    @property
    def _span(self) -> slice:
        return slice(self.released.starts[self.place], self.released.starts[self.place + 1])

    @property
    def id(self) -> str:
        """The name under which it is published."""
        return self.released.ids[self.place]

    @property
    def rows(self) -> Batch:
        """The rows as they arrived, in the published order."""
        return self.released.rows.take(self._span)

    @property
    def members(self) -> Ints:
        """Where they came from, in ascending order."""
        released, place = self.released, self.place
        return released.members[released.starts[place] : released.starts[place + 1]]

    @property
    def arrived(self) -> Floats:
        """When each of the rows came."""
        released, place = self.released, self.place
        return released.rows.arrived[released.starts[place] : released.starts[place + 1]]

    @property
    def shown(self) -> Ints:
        """Their sensitive codes as published."""
        return self.released.shown[self._span]

    @property
    def raised(self) -> dict[str, Ints]:
        """The nodes that sensitive values were raised to, for the sake of somebody's guard, by attribute."""
        if self.released.shown is self.released.rows.sensitive:
            return {}
        shown, came = self.shown, self.released.rows.sensitive[self._span]
        nodes = {column.name: shown[shown[:, s] != came[:, s], s] for s, column in enumerate(self.schema.sensitive)}
        return {name: found for name, found in nodes.items() if len(found)}

    @property
    def schema(self) -> Schema:
        """Under which it was released."""
        return self.released.schema

    @property
    def low(self) -> Ints:
        """The lower ends of what is published, one per quasi-identifier."""
        return np.asarray(self.released.low[self.place])

    @property
    def high(self) -> Ints:
        """The upper ends of what is published."""
        return np.asarray(self.released.high[self.place])

    @property
    def losses(self) -> Floats:
        """The shares of information lost."""
        return np.asarray(self.released.losses[self.place])

    @property
    def loss(self) -> float:
        """The weighted sum of the losses."""
        return self.released.loss[self.place]

    @property
    def people(self) -> int:
        """How many the rows are about, with those published earlier under its id; without a subject, each another's."""
        return self.released.people[self.place]

    @property
    def reason(self) -> Reason:
        """Why it left now."""
        return self.released.reasons[self.place]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The published value of each quasi-identifier."""
        return publish.labels_of(self)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield what is published, in the published order."""
        return publish.records_of(self)

    __iter__ = records

    def encoded(self) -> list[bytes]:
        """Return the records as JSON: the same bytes for the same members, policy and secret."""
        [records] = publish.encode_all([self])
        return records

    @property
    def everyone(self) -> Batch:
        """All rows published under the group's id so far, with their sensitive codes as published."""
        rows, earlier = self.rows.with_sensitive(self.shown), self.released.earlier
        return rows if earlier is None else Batch.concat([earlier, rows])


def release(rows: Batch, schema: Schema, reason: Reason) -> Group:
    """Make one group of the rows, or raise PrivacyViolation."""
    return release_all(rows, np.arange(len(rows)), [len(rows)], schema, [reason])[0]


def release_all(
    rows: Batch, chosen: Ints, sizes: Sequence[int], schema: Schema, reasons: Sequence[Reason]
) -> list[Group]:
    """Make groups of the rows chosen, `sizes` many one after the other, or raise PrivacyViolation for the first that
    must not leave.

    1. Put each group's rows into an order that only the secret and the members decide.
    2. Raise sensitive values where a model needs it.
    3. Ask every model.
    4. Generalize each quasi-identifier to what covers all rows of the group.
    """
    if min(sizes, default=0) < 1:
        raise PrivacyViolation("an empty group reached the gate") if sizes else ValueError("no groups to release")
    starts = np.cumsum([0, *sizes])
    if starts[-1] != len(chosen):
        raise ValueError("the sizes do not add up")
    order, members, ids = _arrange(rows.ref[chosen], sizes, starts, schema)
    rows = rows.take(chosen[order])
    facts = rows.facts
    repaired = schema.requirements.repair_each(facts, starts)
    people = distinct_each(rows.subject, starts).tolist()
    failing = schema.requirements.first_failing(facts, repaired, starts)
    if failing is not None:
        model, g = failing
        raise PrivacyViolation(
            f"a group of {sizes[g]} rows, {people[g]} {schema.counts}, does not satisfy {model.name}"
        )
    low = np.minimum.reduceat(rows.qi, starts[:-1], axis=0)
    high = np.maximum.reduceat(rows.qi, starts[:-1], axis=0)
    losses = _losses(rows.qi, starts, low, high, schema)
    total = _weighted(losses, schema)
    lost = losses, total.tolist(), np.round(total, 4).tolist()
    box = members, starts.tolist(), ids, low, high, *lost, people, reasons
    raised = repaired.sensitive is not rows.sensitive
    values = publish.raised_values(rows, repaired.sensitive, schema) if raised else rows.values
    released = Released(schema, rows, repaired.sensitive, values, *box, _SEAL)
    return [Group(released, place) for place in range(len(ids))]


def reuse(row: Batch, host: Group) -> Group | None:
    """Return the row under the generalization of a group that has left, if it fits and all rows together still satisfy.

    The host must be the last group of its id, so that nobody is forgotten. None if the row may not join.
    """
    schema = host.schema
    low, high = np.minimum(host.low, row.qi[0]).tolist(), np.maximum(host.high, row.qi[0]).tolist()
    if tuple(c.hierarchy.label(*ends) for c, *ends in zip(schema.quasi, low, high, strict=True)) != host.labels:
        return None
    everyone = Batch.concat([host.everyone, row])
    if len(np.unique(everyone.identities())) < len(everyone):
        raise PrivacyViolation("a row reached the gate twice")
    requirements = schema.requirements
    if requirements.repairing or requirements.failing(everyone) is not None:  # what was raised cannot be judged anew
        return None
    lost = host.losses[None], [host.loss], [host.released.told[host.place]]
    box = host.low[None], host.high[None], *lost
    people, earlier = [distinct(everyone.subject)], host.everyone
    told = row.ref, [0, 1], [host.id], *box, people, [Reason.REUSED]
    return Group(Released(schema, row, row.sensitive, row.values, *told, _SEAL, earlier), 0)


def _arrange(ref: Ints, sizes: Sequence[int], starts: Ints, schema: Schema) -> tuple[Ints, Ints, list[str]]:
    """Return the published order of the rows, the refs in ascending order, and the groups' ids.

    All depend on the sets of members alone.
    """
    small = np.uint16 if len(sizes) <= 1 << 16 else np.int64  # sixteen bits are sorted without comparing
    group, identity = np.repeat(np.arange(len(sizes), dtype=small), sizes), identities(ref)
    told_apart = ref[:, 0].max() < 1 << 15  # then identities are in the order of refs, and faster to sort
    ascending = np.argsort(identity) if told_apart else np.lexsort((ref[:, 1], ref[:, 0]))
    if not np.diff(identity[ascending]).all():
        raise PrivacyViolation("a row reached the gate twice")
    by_ref = ascending[np.argsort(group[ascending], kind="stable")]
    members = ref[by_ref]
    refs = members.astype("<i8").tobytes()
    key, policy = schema.keys.group, schema.fingerprint.encode()
    shuffles, ids = [], []
    for start, end in pairwise((16 * starts).tolist()):
        secret = hashlib.blake2b(policy + refs[start:end], key=key, digest_size=32).digest()
        shuffles.append(hashlib.shake_256(secret).digest((end - start) // 2))
        ids.append(secret[:8].hex())
    shuffle = np.frombuffer(b"".join(shuffles), dtype="<u8")
    shuffled = _ascending(shuffle)
    return np.asarray(by_ref[shuffled[np.argsort(group[shuffled], kind="stable")]]), members, ids


def _ascending(numbers: npt.NDArray[np.uint64]) -> Ints:
    """Return the order of random numbers, equal ones as they are: hardly any are, and then sorting is much faster."""
    order = np.argsort(numbers)
    found = numbers[order]
    return np.argsort(numbers, kind="stable") if (found[1:] == found[:-1]).any() else order


def _losses(qi: Ints, starts: Ints, low: Ints, high: Ints, schema: Schema) -> Floats:
    losses = cell_prices(schema.prices.facts, schema.prices.values, low, high)
    for q, column in enumerate(schema.quasi):
        if isinstance(column.hierarchy, ValueSet):
            losses[:, q] = [column.hierarchy.loss_of(qi[a:b, q]) for a, b in pairwise(starts)]
    return losses


def _weighted(losses: Floats, schema: Schema) -> Floats:
    """Column by column, so that a group's sum does not depend on how many are summed at once."""
    total = np.zeros(len(losses))
    for column, weight in zip(losses.T, schema.prices.weight.tolist(), strict=True):
        total += column * weight
    return total
