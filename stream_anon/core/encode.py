"""Slicing: turn records into columns. Identifiers go no further than this module; undeclared fields are not read.

What is published in place of a value (`fields`) is made here, so that nothing behind this module holds the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch, identities
from stream_anon.core.decode import Coded, Columns, Decoder, Payload, Reader, Reject, Rejection
from stream_anon.core.hierarchy import Floats, Ints, Tree, Trouble
from stream_anon.core.keys import MEMO_LIMIT, hash_subjects
from stream_anon.core.schema import Schema, SensitiveColumn
from stream_anon.core.spelling import Spelling

_REJECT = {int(Trouble.MISSING): Reject.MISSING, int(Trouble.UNKNOWN): Reject.UNKNOWN}


_TEXTS = frozenset({str, type(None)})
_PLAIN = frozenset({str, int, bool, type(None)})
"""Types that may be published unchanged, as may a float that JSON can write. Others could carry undeclared fields."""

Codes = tuple[Ints, Ints | None]
"""The codes of values, and the `Trouble` of each, None if there is none."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The rows that could be encoded, and why the others could not, in the order of the input."""

    batch: Batch
    rejections: list[Rejection]


class Encoder:
    """A converter of records into a `Batch` under one schema.

    A row's subject is a hash of its identifier; without a declared subject each row is its own, identified by
    its ref. With `stable_subjects` the hash is keyed by the policy's secret and survives the process. Every method
    takes refs (n, 2) and arrival times (n,) of the records in their order. `reader` makes what reads the declared
    fields, given their types by name; records are JSON, or cells of a table, unless another one is given.
    """

    def __init__(
        self,
        schema: Schema,
        stable_subjects: bool = False,
        reader: Callable[[Mapping[str, str]], Reader] = Decoder,
    ) -> None:
        self._schema = schema
        self._subject_key = schema.keys.subject if stable_subjects else None
        types = {column.name: column.type for column in schema.quasi}
        if reader is Decoder:
            types |= {name: f"{types[name]} or text" for name in schema.numbers_with_words}
        for column in schema.sensitive:
            types[column.name] = column.type
            types.update({column.guard_field: "label"} if column.guard_field else {})
            types.update({column.psf_field: "psf"} if column.psf_field else {})
        types.update({name: "any" for name in schema.published if name not in types})
        types.update({schema.subject: "identifier"} if schema.subject else {})
        for action in schema.actions.values():
            types = {**action.reads, **types}
        self._reader = reader(types)
        self._guards: dict[tuple[int, int, str], int] = {}
        self._texts: dict[str | None, str | None] = {}  # sensitive ones: few differ, and many rows wait with them

    def encode(self, payloads: Sequence[Payload], ref: Ints, arrived: Floats) -> Encoded:
        """Read and slice records."""
        return self._slice(self._reader.columns(payloads), ref, arrived)

    def _slice(self, found: Columns, ref: Ints, arrived: Floats) -> Encoded:
        count, (kept, columns, refused) = len(ref), found
        if refused:
            ref, arrived = ref[kept], arrived[kept]

        def refuse(name: str, trouble: Ints | None) -> None:
            for i in np.flatnonzero(trouble) if trouble is not None else ():
                assert trouble is not None  # noqa: S101 - for the type checker
                refused.setdefault(int(kept[i]), Rejection(int(kept[i]), _REJECT[int(trouble[i])], name))

        n, schema = len(kept), self._schema
        qi = np.empty((n, len(schema.quasi)), dtype=np.int64)
        for q, quasi in enumerate(schema.quasi):
            qi[:, q], trouble = _through(quasi.hierarchy.encode, columns[quasi.name])
            refuse(quasi.name, trouble)
        sensitive = np.empty((n, len(schema.sensitive)), dtype=np.int64)
        guard = np.full(sensitive.shape, NO_GUARD, dtype=np.int64)
        psf = np.zeros(sensitive.shape, dtype=np.int64)
        if len(self._texts) > MEMO_LIMIT:
            self._texts.clear()
        published: list[tuple[str, Sequence[Any], set[type]]] = []
        for name in schema.published:
            action = schema.actions.get(name)
            own, spoilt = (columns[name], []) if action is None else action.apply(columns)
            kinds = set(map(type, own.values if isinstance(own, Coded) else own))
            if action is None and float in kinds:
                own = Coded(_without_nan(own.values), own.codes) if isinstance(own, Coded) else _without_nan(own)
            if len(published) < len(schema.sensitive) and kinds <= _TEXTS and not isinstance(own, Coded):
                own = list(map(self._texts.setdefault, own, own))
            published.append((name, own, kinds))
            for i, reason in spoilt:
                refused.setdefault(int(kept[i]), Rejection(int(kept[i]), Reject(reason.value), name))
        values = np.empty((n, len(published)), dtype=object)
        for p, (name, own, kinds) in enumerate(published):
            values[:, p] = own.objects() if isinstance(own, Coded) else np.fromiter(own, object, n)
            if not kinds <= _PLAIN:
                for i in _unpublishable(own, name in schema.lists):
                    refused.setdefault(int(kept[i]), Rejection(int(kept[i]), Reject.WRONG_TYPE, name))
        for s, secret in enumerate(schema.sensitive):
            sensitive[:, s], trouble = _through(secret.encode, published[s][1])
            refuse(secret.name, trouble)
            for field, target, read in (
                (secret.guard_field, guard, self._read_guards),
                (secret.psf_field, psf, _read_psf),
            ):
                if field:
                    for i, code in read(s, secret, sensitive[:, s], columns[field], target):
                        refused.setdefault(int(kept[i]), Rejection(int(kept[i]), code, field))
        if schema.subject is None:
            subject = identities(ref)
        else:
            named = partial(_people, spelling=schema.naming, key=self._subject_key)
            subject, nameless = _through(named, columns[schema.subject])
            refuse(schema.subject, nameless)
        serial = np.full(n, UNNUMBERED, dtype=np.int64)
        batch = Batch(qi, sensitive, guard, psf, subject, arrived, ref, serial, values)
        if refused:
            usable = np.array([int(i) not in refused for i in kept], dtype=bool)
            batch, kept = batch.take(usable), kept[usable]
        for model, index in schema.requirements.impossible(batch.facts):
            name = schema.sensitive[getattr(model, "column", 0)].name
            for i in kept[index].tolist():
                refused.setdefault(i, Rejection(i, Reject.UNPLACEABLE, name))
        if len(batch) + len(refused) > count:
            batch = batch.take(np.array([int(i) not in refused for i in kept], dtype=bool))
        return Encoded(batch, [refused[i] for i in sorted(refused)])

    def _read_guards(
        self, s: int, column: SensitiveColumn, codes: Ints, labels: Sequence[str | None], target: Ints
    ) -> list[tuple[int, Reject]]:
        """Write each row's guarding node; reject a row whose guard is not above its value."""
        tree = column.hierarchy
        bad: list[tuple[int, Reject]] = []
        for i, label in enumerate(labels):
            if not label or not isinstance(tree, Tree):
                continue
            key = (s, int(codes[i]), label)
            node = self._guards.get(key)
            if node is None:
                node = tree.node_on_path(key[1], label)
                if node is None:
                    bad.append((i, Reject.BAD_GUARD))
                    continue
                self._guards[key] = node
            target[i, s] = node
        return bad


def _through(encode: Callable[[Sequence[Any]], Codes], column: Sequence[Any]) -> Codes:
    """Encode a column; where its different values are known, each of them once."""
    if not isinstance(column, Coded):
        return encode(column)
    codes, trouble = encode(column.values)
    trouble = None if trouble is None else trouble[column.codes]
    return codes[column.codes], trouble if trouble is not None and trouble.any() else None


def _people(values: Sequence[Any], spelling: Spelling, key: bytes | None) -> Codes:
    """Return who rows are about, and which of them name nobody."""
    people, nameless = hash_subjects(values, spelling, key)
    return people, nameless * int(Trouble.MISSING) if nameless.any() else None


def _without_nan(values: Sequence[Any]) -> list[Any]:
    """Return the values with None for NaN, which binary tables have in place of what is not there."""
    return [None if type(value) is float and math.isnan(value) else value for value in values]


def _unpublishable(values: Sequence[Any], lists: bool) -> list[int]:
    """Return the places of values that are neither scalars nor, where the policy allows them, lists of scalars."""
    return [
        i
        for i, value in enumerate(values)
        if not _is_scalar(value) and not (lists and isinstance(value, list) and all(map(_is_scalar, value)))
    ]


def _is_scalar(value: Any) -> bool:
    """Tell whether a value can be published unchanged; infinite numbers would all be written as null."""
    return type(value) in _PLAIN or (type(value) is float and math.isfinite(value))


def _read_psf(
    s: int, column: SensitiveColumn, codes: Ints, values: Sequence[int | None], target: Ints
) -> list[tuple[int, Reject]]:
    """Write what each person asks for; reject a row with anything but 1, 0, -1 or nothing."""
    bad = [i for i, value in enumerate(values) if value not in (1, 0, -1, None)]
    target[:, s] = [value if value in (1, -1) else 0 for value in values]
    return [(i, Reject.BAD_PSF) for i in bad]
