"""Encoded rows as bytes: how they wait on disk, and travel, on the way to their part. They hold values as they came."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
import numpy as np

from stream_anon.core.batch import NO_GUARD, UNNUMBERED, Batch
from stream_anon.core.hierarchy import Ints

_JSON = msgspec.json.Encoder()


class _Chunk(msgspec.Struct, array_like=True):
    """Some rows, column by column: numbers in as few bytes as hold them, None for a guard or psf that nobody has.

    `values` are JSON: those of the rows or, of text that repeats, the different ones and the place of each row's.
    """

    rows: int
    qi: list[bytes]
    sensitive: list[bytes]
    guard: list[bytes] | None
    psf: list[bytes] | None
    subject: list[bytes]
    ref: list[bytes]
    values: list[tuple[bytes, bytes | None]]


_WRITE, _READ = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(_Chunk)


def packed(rows: Batch) -> bytes:
    """Return rows as bytes; arrival times and serial numbers are not among them."""
    chunk = _Chunk(
        len(rows),
        _narrowed(rows.qi),
        _narrowed(rows.sensitive),
        None if (rows.guard == NO_GUARD).all() else _narrowed(rows.guard),
        _narrowed(rows.psf) if rows.psf.any() else None,
        _narrowed(rows.subject[:, None]),
        _narrowed(rows.ref),
        list(map(_said, rows.values.T.tolist())),
    )
    return _WRITE.encode(chunk)


def unpacked(data: bytes) -> Batch:
    """Return the rows; raise `msgspec.DecodeError` or `ValueError` for bytes that are damaged."""
    chunk = _READ.decode(data)
    n = chunk.rows
    sensitive = _widened(chunk.sensitive, n)
    values = np.empty((n, len(chunk.values)), dtype=object)
    for place, column in enumerate(chunk.values):
        values[:, place] = _objects(*column)
    return Batch(
        qi=_widened(chunk.qi, n),
        sensitive=sensitive,
        guard=np.full(sensitive.shape, NO_GUARD, dtype=np.int64) if chunk.guard is None else _widened(chunk.guard, n),
        psf=np.zeros(sensitive.shape, dtype=np.int64) if chunk.psf is None else _widened(chunk.psf, n),
        subject=_widened(chunk.subject, n)[:, 0],
        arrived=np.zeros(n),
        ref=_widened(chunk.ref, n),
        serial=np.full(n, UNNUMBERED, dtype=np.int64),
        values=values,
    )


def _narrowed(numbers: Ints) -> list[bytes]:
    """Return each column as the code of its type and its numbers."""
    found = []
    for column in numbers.T:
        kind = np.result_type(np.min_scalar_type(column.min()), np.min_scalar_type(column.max()))
        kind = kind if np.can_cast(kind, np.int64) else np.dtype(np.int64)
        found.append(kind.char.encode() + column.astype(kind).tobytes())
    return found


def _widened(columns: list[bytes], rows: int) -> Ints:
    numbers = np.empty((rows, len(columns)), dtype=np.int64)
    for place, column in enumerate(columns):
        numbers[:, place] = np.frombuffer(column, dtype=column[:1].decode(), offset=1)
    return numbers


def _said(column: list[Any]) -> tuple[bytes, bytes | None]:
    """Return values as JSON; text that repeats once, for it is read as few objects then. 1 and True are equal, too."""
    if {str, type(None)}.issuperset(map(type, column)):
        places = dict(zip(dict.fromkeys(column), count()))
        if 2 * len(places) < len(column):
            codes = np.fromiter(map(places.__getitem__, column), np.int64, len(column))
            return _JSON.encode(list(places)), _narrowed(codes[:, None])[0]
    return _JSON.encode(column), None


def _objects(said: bytes, codes: bytes | None) -> Any:
    values = msgspec.json.decode(said)
    found = np.fromiter(values, object, len(values))
    return found if codes is None else found[np.frombuffer(codes, dtype=codes[:1].decode(), offset=1)]
