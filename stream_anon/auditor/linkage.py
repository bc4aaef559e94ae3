"""Measure how far tokens can be followed: in how many groups each of them is found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stream_anon.auditor.numbers import Rows
from stream_anon.auditor.policy import Rules


@dataclass(frozen=True, slots=True)
class Linkage:
    """The tokens of one field: how many there are, in how many groups one is found at most, and on average."""

    tokens: int
    largest: int
    mean: float


class Links:
    """A collector of tokens and the groups they are found in, 16 bytes a record."""

    def __init__(self, rules: Rules | None) -> None:
        self._names = rules.tokens if rules else ()
        self._pairs: dict[str, list[npt.NDArray[np.int64]]] = {name: [] for name in self._names}

    def add(self, rows: Rows) -> None:
        """Take in the rows of complete groups."""
        for i, name in enumerate(self._names):
            groups = rows["group"].astype(np.int64)
            pairs = np.stack([rows[f"t{i}"], groups], axis=1)
            self._pairs[name].append(np.unique(pairs[pairs[:, 0] != 0], axis=0))

    def all(self) -> dict[str, Linkage]:
        """Return the linkage of every field with tokens."""
        found: dict[str, Linkage] = {}
        for name, parts in self._pairs.items():
            if parts:
                pairs = np.unique(np.concatenate(parts), axis=0)
                _, counts = np.unique(pairs[:, 0], return_counts=True)
                if len(counts):
                    found[name] = Linkage(len(counts), int(counts.max()), round(float(counts.mean()), 4))
        return found
