"""The gate. `release` is the only way to a `Group`; it asks every privacy model first and cannot be switched off."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from enum import StrEnum
from itertools import accumulate, chain, pairwise
from typing import Any

import msgspec
import numpy as np

from stream_anon.core.batch import Batch, Objects
from stream_anon.core.form import Envelope, each_as_json
from stream_anon.core.hierarchy import Floats, Ints, Tree, ValueSet
from stream_anon.core.kernels import cell_prices
from stream_anon.core.privacy.base import distinct, distinct_each
from stream_anon.core.schema import Schema
from stream_anon.errors import PrivacyViolation

_SEAL = object()
_JSON = msgspec.json.Encoder()


class Reason(StrEnum):
    """Why a group left now."""

    READY = "ready"
    DEADLINE = "deadline"
    FLUSH = "flush"
    REUSED = "reused"
    BATCH = "batch"


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows that satisfy the policy together, and what is published of them.

    `rows` are as they arrived, in the published order; `shown` are their sensitive codes as published, some of them
    raised to ancestors. `losses` are the shares of information lost per quasi-identifier, `loss` is their weighted sum,
    0 to 1. Id, order, labels and so every byte of the records are functions of the members, the policy
    and the secret: the same members give the same records again. `earlier` are rows published before under the same
    id, if this group only adds to it.
    """

    id: str
    rows: Batch
    shown: Ints
    low: Ints
    high: Ints
    losses: Floats
    loss: float
    people: int
    reason: Reason
    schema: Schema = field(repr=False)
    seal: InitVar[object]
    earlier: Batch | None = None

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise PrivacyViolation("a group was made without passing the gate")

    def __repr__(self) -> str:
        return f"<Group of {len(self.rows)} rows, {self.people} people, {self.reason}>"

    @property
    def labels(self) -> tuple[Any, ...]:
        """The published value of each quasi-identifier."""
        ends = zip(self.schema.quasi, self.low.tolist(), self.high.tolist(), strict=True)
        return tuple(
            column.hierarchy.label_of(self.rows.qi[:, q])
            if isinstance(column.hierarchy, ValueSet)
            else column.hierarchy.label(low, high)
            for q, (column, low, high) in enumerate(ends)
        )

    def records(self) -> Iterator[dict[str, Any]]:
        """What is published, in the published order."""
        form, labels, envelope = self.schema.form, self.labels, self.envelope
        for row, values in enumerate(self.published().tolist(), envelope.first):
            yield form.nested([*labels, *values], envelope, row)

    def encoded(self) -> list[bytes]:
        """The records as JSON: the same bytes for the same members, policy and secret."""
        [records] = encode_all([self])
        return records

    @property
    def envelope(self) -> Envelope:
        """What the records tell of the group."""
        before = 0 if self.earlier is None else len(self.earlier)
        return Envelope(self.id, before, before + len(self.rows), self.people, round(self.loss, 4))

    def written_labels(self) -> list[bytes]:
        """The labels as JSON."""
        form = self.schema.form
        labels = form.labels(self.low.tolist(), self.high.tolist())
        for q, values in form.sets:
            [labels[q]] = each_as_json([values.label_of(self.rows.qi[:, q])])
        return labels

    def published(self) -> Objects:
        """What is published as it came, but for sensitive values published as an ancestor."""
        if self.shown is self.rows.sensitive:
            return self.rows.values
        values = self.rows.values.copy()
        for row, s in zip(*np.nonzero(self.shown != self.rows.sensitive), strict=True):
            tree = self.schema.sensitive[s].hierarchy
            assert isinstance(tree, Tree)  # noqa: S101 - only values in a tree can be raised
            values[row, s] = tree.labels[int(self.shown[row, s])]  # sensitive columns come first
        return values

    @property
    def everyone(self) -> Batch:
        """All rows published under the group's id so far, with their sensitive codes as published."""
        rows = self.rows.with_sensitive(self.shown)
        return rows if self.earlier is None else Batch.concat([self.earlier, rows])


def encode_lines(groups: Sequence[Group]) -> bytes:
    """The records of all groups as JSON, each ended by a line feed; within a record there is none."""
    return b"\n".join([*chain.from_iterable(encode_all(groups)), b""])


def encode_all(groups: Sequence[Group]) -> Iterator[list[bytes]]:
    """The records of each group as JSON. Values are written all together, records group by group."""
    if not groups or not groups[0].schema.form.flat:
        yield from (list(map(_JSON.encode, group.records())) for group in groups)
        return
    values = np.concatenate([group.published() for group in groups])
    columns = [each_as_json(column) for column in values.T.tolist()]
    ends = accumulate([len(group.rows) for group in groups], initial=0)
    for group, (first, last) in zip(groups, pairwise(ends), strict=True):
        mine = [column[first:last] for column in columns]
        yield group.schema.form.written(group.written_labels(), mine, group.envelope)


def release(rows: Batch, schema: Schema, reason: Reason) -> Group:
    """Make one group of the rows, or raise PrivacyViolation."""
    return release_all(rows, [len(rows)], schema, [reason])[0]


def release_all(rows: Batch, sizes: Sequence[int], schema: Schema, reasons: Sequence[Reason]) -> list[Group]:
    """Make groups of consecutive rows, `sizes` many each, or raise PrivacyViolation for the first that must not leave.

    1. Put each group's rows into an order that only the secret and the members decide.
    2. Raise sensitive values where a model needs it.
    3. Ask every model.
    4. Generalize each quasi-identifier to what covers all rows of the group.
    """
    if min(sizes, default=0) < 1:
        raise PrivacyViolation("an empty group reached the gate") if sizes else ValueError("no groups to release")
    if len(np.unique(rows.identities())) < len(rows):
        raise PrivacyViolation("a row reached the gate twice")
    starts = np.cumsum([0, *sizes])
    rows, identities = _arrange(rows, sizes, starts, schema)
    repaired = schema.requirements.repair_each(rows, starts)
    people = distinct_each(rows.subject, starts).tolist()
    failing = schema.requirements.first_failing(rows, repaired, starts)
    if failing is not None:
        model, g = failing
        raise PrivacyViolation(f"a group of {sizes[g]} rows of {people[g]} people does not satisfy {model.name}")
    low = np.minimum.reduceat(rows.qi, starts[:-1], axis=0)
    high = np.maximum.reduceat(rows.qi, starts[:-1], axis=0)
    losses = _losses(rows, starts, low, high, schema)
    total = _weighted(losses, schema).tolist()
    groups = []
    for g, (identity, (first, last)) in enumerate(zip(identities, pairwise(starts.tolist()), strict=True)):
        mine = rows.take(slice(first, last))
        shown = mine.sensitive if repaired is rows else repaired.sensitive[first:last]
        box = low[g], high[g], losses[g], total[g]
        groups.append(Group(identity, mine, shown, *box, people[g], reasons[g], schema, _SEAL))
    return groups


def reuse(row: Batch, host: Group) -> Group | None:
    """The row under the generalization of a group that has left, if it fits and all rows together still satisfy.

    The host must be the last group of its id, so that nobody is forgotten. None if the row may not join.
    """
    low, high = np.minimum(host.low, row.qi[0]).tolist(), np.maximum(host.high, row.qi[0]).tolist()
    columns = host.schema.quasi
    if tuple(c.hierarchy.label(*ends) for c, *ends in zip(columns, low, high, strict=True)) != host.labels:
        return None
    everyone = Batch.concat([host.everyone, row])
    if len(np.unique(everyone.identities())) < len(everyone):
        raise PrivacyViolation("a row reached the gate twice")
    requirements = host.schema.requirements
    if requirements.repairing or requirements.failing(everyone) is not None:  # what was raised cannot be judged anew
        return None
    box = host.low, host.high, host.losses, host.loss
    people = distinct(everyone.subject)
    return Group(host.id, row, row.sensitive, *box, people, Reason.REUSED, host.schema, _SEAL, host.everyone)


def _arrange(rows: Batch, sizes: Sequence[int], starts: Ints, schema: Schema) -> tuple[Batch, list[str]]:
    """The rows in their published order, and the groups' ids; both depend on the sets of members alone."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    by_ref = np.lexsort((rows.ref[:, 1], rows.ref[:, 0], group))
    refs = rows.ref[by_ref].astype("<i8").tobytes()
    key, policy = schema.keys.group, schema.fingerprint.encode()
    shuffles, identities = [], []
    for start, size in zip(starts.tolist(), sizes, strict=False):
        members = refs[16 * start : 16 * (start + size)]
        secret = hashlib.blake2b(policy + members, key=key, digest_size=32).digest()
        shuffles.append(hashlib.shake_256(secret).digest(8 * size))
        identities.append(secret[:8].hex())
    shuffle = np.frombuffer(b"".join(shuffles), dtype="<u8")
    return rows.take(by_ref[np.lexsort((shuffle, group))]), identities


def _losses(rows: Batch, starts: Ints, low: Ints, high: Ints, schema: Schema) -> Floats:
    losses = cell_prices(schema.prices.facts, schema.prices.values, low, high)
    for q, column in enumerate(schema.quasi):
        if isinstance(column.hierarchy, ValueSet):
            losses[:, q] = [column.hierarchy.loss_of(rows.qi[a:b, q]) for a, b in pairwise(starts)]
    return losses


def _weighted(losses: Floats, schema: Schema) -> Floats:
    """Column by column, so that a group's sum does not depend on how many are summed at once."""
    total = np.zeros(len(losses))
    for column, weight in zip(losses.T, schema.prices.weight.tolist(), strict=True):
        total += column * weight
    return total
