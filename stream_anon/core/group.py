"""The gate. `release` is the only way to a `Group`; it asks every privacy model first and cannot be switched off."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints, Tree, ValueSet
from stream_anon.core.kernels import cell_prices
from stream_anon.core.privacy.base import distinct, distinct_each
from stream_anon.core.schema import ENVELOPE, Schema
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
class Group:
    """Rows that satisfy the policy together, and what is published of them.

    `rows` are as they arrived, in the published order; `shown` are their sensitive codes as published, some of them
    raised to ancestors. Id, order, labels and so every byte of the records are functions of the members, the policy
    and the secret: the same members give the same records again. `earlier` are rows published before under the same
    id, if this group only adds to it.
    """

    id: str
    rows: Batch
    shown: Ints
    low: Ints
    high: Ints
    losses: Floats
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
    def loss(self) -> float:
        """The weighted share of information lost, 0 to 1."""
        return float(np.dot(self.losses, self.schema.prices.weight))

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
        schema, labels, raised = self.schema, self.labels, self._raised()
        names = [column.name for column in schema.quasi]
        before = 0 if self.earlier is None else len(self.earlier)
        envelope = self._envelope(before)
        for row, values in enumerate(self.rows.values):
            record: dict[str, Any] = {}
            for name, label in zip(names, labels, strict=True):
                _place(record, name, label)
            for p, name in enumerate(schema.published):
                _place(record, name, raised.get((row, p), values[p]))
            record[ENVELOPE] = envelope | {"row": before + row}
            yield record

    def encoded(self) -> list[bytes]:
        """The records as JSON. What all of them share is written once, where no field stands inside another."""
        if not self.schema.flat:
            return [msgspec.json.encode(record) for record in self.records()]
        encode, published = msgspec.json.encode, self.schema.published
        before = 0 if self.earlier is None else len(self.earlier)
        head = encode(dict(zip([column.name for column in self.schema.quasi], self.labels, strict=True)))[:-1]
        first, mark, last = encode({ENVELOPE: self._envelope(before)}).partition(b'"row":0')
        start, middle = head + (b"," if published else b""), b"," + first[1:] + mark[:-1]
        own = self.rows.values.tolist()
        for (row, p), label in self._raised().items():
            own[row][p] = label
        return [
            b"%b%b%b%d%b" % (start, encode(dict(zip(published, values, strict=True)))[1:-1], middle, before + row, last)
            for row, values in enumerate(own)
        ]

    def _envelope(self, before: int) -> dict[str, Any]:
        """What every record tells of its group; `row` is each one's own."""
        schema = self.schema
        return {
            "policy": f"{schema.policy.name}@{schema.fingerprint[:6]}",
            "group": self.id,
            "row": 0,
            "size": before + len(self.rows),
            "subjects": self.people,
            "loss": round(self.loss, 4),
        }

    @property
    def everyone(self) -> Batch:
        """All rows published under the group's id so far, with their sensitive codes as published."""
        rows = self.rows.with_sensitive(self.shown)
        return rows if self.earlier is None else Batch.concat([self.earlier, rows])

    def _raised(self) -> dict[tuple[int, int], str]:
        """Labels of the sensitive values that are published as an ancestor; sensitive columns come first in values."""
        found: dict[tuple[int, int], str] = {}
        raised = self.shown != self.rows.sensitive
        if not raised.any():
            return found
        for s, i in zip(*np.nonzero(raised.T), strict=True):
            tree = self.schema.sensitive[s].hierarchy
            assert isinstance(tree, Tree)  # noqa: S101 - only values in a tree can be raised
            found[int(i), int(s)] = tree.labels[int(self.shown[i, s])]
        return found


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
    return [
        Group(
            identity,
            rows.take(slice(first, last)),
            repaired.sensitive[first:last],
            low[g],
            high[g],
            losses[g],
            people[g],
            reasons[g],
            schema,
            _SEAL,
        )
        for g, (identity, (first, last)) in enumerate(zip(identities, pairwise(starts.tolist()), strict=True))
    ]


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
    box = host.low, host.high, host.losses
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


def _place(record: dict[str, Any], name: str, value: Any) -> None:
    """Write a value under a dotted name."""
    if "." in name:
        *parents, name = name.split(".")
        for parent in parents:
            record = record.setdefault(parent, {})
    record[name] = value
