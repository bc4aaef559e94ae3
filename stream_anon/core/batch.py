"""Encoded rows, column by column: the only form in which rows wait, without identifiers or undeclared fields.

A row's quasi-identifiers, sensitive codes and published values lie in arrays of their own; nothing but its place in
them joins them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple, replace

from stream_anon.core.hierarchy.base import Floats, Ints

Objects = npt.NDArray[np.object_]
NO_GUARD = -1
"""The guard of a row whose person wants no protection, or whose policy knows no guards."""

UNNUMBERED = -1
_LISTS = (list, tuple)


class Batch(msgspec.Struct, frozen=True, eq=False):
    """A number of rows as columns of arrays.

    `qi` (n, q): positions in the hierarchies. `sensitive` (n, s): codes, equal if and only if the values are.
    `guard` (n, s): the guarding node of each sensitive value, `NO_GUARD` for none. `psf` (n, s): what the person asks
    for, 1 protect, -1 disclose, 0 unstated. `subject` (n,): who the row is about. `arrived` (n,): when it came, on the
    caller's clock. `ref` (n, 2): partition and offset. `serial` (n,): the number of its arrival, `UNNUMBERED` until an
    engine gives it one; a row that is handed back keeps it. `values` (n, p): what is published unchanged.
    """

    qi: Ints
    sensitive: Ints
    guard: Ints
    psf: Ints
    subject: Ints
    arrived: Floats
    ref: Ints
    serial: Ints
    values: Objects

    def __len__(self) -> int:
        return len(self.subject)

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} rows>"

    def take(self, index: npt.NDArray[np.intp] | npt.NDArray[np.bool_] | slice | Sequence[int]) -> Batch:
        """Return the rows at `index`, in its order."""
        chosen: Any = np.asarray(index, dtype=np.intp) if isinstance(index, _LISTS) else index
        return Batch(*[column[chosen] for column in astuple(self)])

    def identities(self) -> Ints:
        """Return one number per row that no other record has."""
        return identities(self.ref)

    @property
    def facts(self) -> Batch:
        """The same rows as algorithms and models see them: without what is published unchanged."""
        return replace(self, values=np.empty((len(self), 0), dtype=object))

    def with_sensitive(self, sensitive: Ints) -> Batch:
        """Return the same rows with other codes in their sensitive columns: values raised to ancestors."""
        return replace(self, sensitive=sensitive)

    @staticmethod
    def concat(batches: Sequence[Batch]) -> Batch:
        """Join all rows in order; at least one batch is needed to know the columns."""
        if len(batches) == 1:
            return batches[0]
        return Batch(*map(np.concatenate, zip(*map(astuple, batches), strict=True)))


def cut(rows: Ints, at: Iterable[int]) -> list[Ints]:
    """Return the parts of some rows between the places given: `numpy.split`, faster where there are many parts.

    >>> cut(np.arange(5), [2, 4])
    [array([0, 1]), array([2, 3]), array([4])]
    """
    return [rows[start:end] for start, end in pairwise([0, *at, len(rows)])]


def identities(ref: Ints) -> Ints:
    """Return one number per ref (n, 2): a partition holds fewer than 2^48 records."""
    return np.asarray(ref[:, 0] * np.int64(1 << 48) + ref[:, 1])
