"""An order of rows that they alone decide: wherever a part is computed again, its rows are numbered as before."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from stream_anon.core.batch import Batch
from stream_anon.core.schema import Schema

_ODD = np.uint64(0x9E3779B97F4A7C15)


def in_own_order(rows: Batch, schema: Schema) -> Batch:
    """Return rows in an order that does not depend on the one they came in; those that are equal may change places.

    1. By a hash of all codes, and of who the row is about, if the policy says.
    2. Where hashes are equal, by the codes themselves, and by what is published unchanged.
    """
    people = [rows.subject[:, None]] if schema.subject else []  # else a number by the place
    codes = np.hstack([rows.qi, rows.sensitive, rows.guard, rows.psf, *people])
    hashes = _hashes(codes)
    order = np.argsort(hashes)
    found = hashes[order]
    alike = np.append(False, found[1:] == found[:-1])
    tied = np.flatnonzero(alike | np.append(alike[1:], False))

    def full(row: int) -> tuple[Any, ...]:
        return int(hashes[row]), codes[row].tolist(), msgspec.json.encode(rows.values[row].tolist())

    order[tied] = sorted(order[tied].tolist(), key=full)
    return rows.take(order)


def _hashes(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    found = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        found = (found ^ column.astype(np.uint64)) * _ODD
        found ^= found >> np.uint64(29)
    return found
