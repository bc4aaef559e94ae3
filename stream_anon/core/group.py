"""The gate. `release` is the only way to a `Group`; it asks every privacy model first and cannot be switched off."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np

from stream_anon.core.batch import Batch
from stream_anon.core.hierarchy import Floats, Ints, Tree, ValueSet
from stream_anon.core.privacy.base import distinct
from stream_anon.core.schema import Schema
from stream_anon.errors import PrivacyViolation

ENVELOPE = "_anon"
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

    Id, row order, labels and so every byte of the records are functions of the members, the policy and the secret: the
    same members give the same records again.
    """

    id: str
    rows: Batch
    low: Ints
    high: Ints
    labels: tuple[Any, ...]
    losses: Floats
    people: int
    reason: Reason
    schema: Schema = field(repr=False)
    seal: object = field(repr=False)

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise PrivacyViolation("a group was made without passing the gate")

    def __repr__(self) -> str:
        return f"<Group of {len(self.rows)} rows, {self.people} people, {self.reason}>"

    @property
    def loss(self) -> float:
        """The weighted share of information lost, 0 to 1."""
        return float(np.dot(self.losses, self.schema.prices.weight))

    def records(self) -> Iterator[dict[str, Any]]:
        """What is published, in the published order."""
        schema = self.schema
        names = [column.name for column in schema.quasi]
        policy = f"{schema.policy.name}@{schema.fingerprint[:6]}"
        size, loss = len(self.rows), round(self.loss, 4)
        raised = self._raised()
        for row, values in enumerate(self.rows.values):
            record: dict[str, Any] = {}
            for name, label in zip(names, self.labels, strict=True):
                _place(record, name, label)
            for p, name in enumerate(schema.published):
                _place(record, name, raised.get((row, p), values[p]))
            record[ENVELOPE] = {
                "policy": policy,
                "group": self.id,
                "row": row,
                "size": size,
                "subjects": self.people,
                "loss": loss,
            }
            yield record

    def encoded(self) -> list[bytes]:
        """The records as JSON."""
        return [msgspec.json.encode(record) for record in self.records()]

    def _raised(self) -> dict[tuple[int, int], str]:
        """Labels of the sensitive values that are published as an ancestor; sensitive columns come first in values."""
        found: dict[tuple[int, int], str] = {}
        for s, column in enumerate(self.schema.sensitive):
            if column.guard_field is not None and isinstance(column.hierarchy, Tree):
                tree = column.hierarchy
                codes = self.rows.sensitive[:, s]
                found.update({(int(i), s): tree.labels[int(codes[i])] for i in np.flatnonzero(codes >= tree.size)})
        return found


def release(rows: Batch, schema: Schema, reason: Reason) -> Group:
    """Make a group of the rows, or raise PrivacyViolation.

    1. Put the rows into an order that only the secret and the members decide.
    2. Raise sensitive values where a model needs it.
    3. Ask every model.
    4. Generalize each quasi-identifier to what covers all rows.
    """
    rows, group_id = _arrange(rows, schema)
    rows = schema.requirements.repair(rows)
    people = distinct(rows.subject)
    failing = schema.requirements.failing(rows)
    if failing is not None:
        raise PrivacyViolation(f"a group of {len(rows)} rows of {people} people does not satisfy {failing.name}")
    low, high = rows.qi.min(axis=0), rows.qi.max(axis=0)
    labels, losses = _generalize(rows, low, high, schema)
    return Group(group_id, rows, low, high, labels, losses, people, reason, schema, _SEAL)


def _arrange(rows: Batch, schema: Schema) -> tuple[Batch, str]:
    """The rows in their published order, and the group's id; both depend on the set of members alone."""
    by_ref = np.lexsort((rows.ref[:, 1], rows.ref[:, 0]))
    members = rows.ref[by_ref].astype("<i8").tobytes()
    secret = hashlib.blake2b(schema.fingerprint.encode() + members, key=schema.keys.group, digest_size=32).digest()
    shuffle = np.frombuffer(hashlib.shake_256(secret).digest(8 * len(rows)), dtype="<u8")
    identity = base64.b32encode(secret[:10]).decode().lower()
    return rows.take(by_ref[np.argsort(shuffle, kind="stable")]), identity


def _generalize(rows: Batch, low: Ints, high: Ints, schema: Schema) -> tuple[tuple[Any, ...], Floats]:
    labels: list[Any] = []
    losses = np.empty(len(schema.quasi))
    for q, column in enumerate(schema.quasi):
        if isinstance(column.hierarchy, ValueSet):
            labels.append(column.hierarchy.label_of(rows.qi[:, q]))
            losses[q] = column.hierarchy.loss_of(rows.qi[:, q])
        else:
            labels.append(column.hierarchy.label(int(low[q]), int(high[q])))
            losses[q] = column.hierarchy.loss(low[q], high[q])
    return tuple(labels), losses


def _place(record: dict[str, Any], name: str, value: Any) -> None:
    """Write a value under a dotted name."""
    *parents, last = name.split(".")
    for parent in parents:
        record = record.setdefault(parent, {})
    record[last] = value
