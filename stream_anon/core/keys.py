"""Keyed hashes from one secret: subjects, sensitive values, group ids and row orders. No key serves two purposes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from stream_anon.core.hierarchy.base import Ints

MEMO_LIMIT = 65_536
"""How many hashes of sensitive values are remembered; a bound, so that a field of free text cannot fill the memory."""


class Keys:
    """The keys of one secret. Without a secret they are random, and nothing can be published again identically."""

    def __init__(self, secret: str | None) -> None:
        root = secret.encode() if secret is not None else secrets.token_bytes(32)
        self.stable = secret is not None
        self.subject = _derive(root, b"subject")
        self.value = _derive(root, b"value")
        self.group = _derive(root, b"group")
        self.ledger = _derive(root, b"ledger")

    def __repr__(self) -> str:
        return "<Keys>"


def _derive(root: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(root, digest_size=32, person=purpose).digest()


def keyed(key: bytes, data: bytes) -> int:
    """A 64-bit keyed hash as a signed integer."""
    return int.from_bytes(hashlib.blake2b(data, key=key, digest_size=8).digest(), "little", signed=True)


def hash_subjects(key: bytes, values: Iterable[Any]) -> Ints:
    """Who a row is about, as a number that tells nothing without the key. Nothing is remembered."""
    encode, blake = msgspec.json.encode, hashlib.blake2b
    digests = b"".join([blake(encode(value), key=key, digest_size=8).digest() for value in values])
    return np.frombuffer(digests, dtype="<i8").astype(np.int64)


class ValueHash:
    """Codes for sensitive values that have no hierarchy: equal values, equal codes."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._memo: dict[Any, int] = {}

    def __call__(self, values: Sequence[Any]) -> Ints:
        """One code per value."""
        try:
            return np.fromiter(map(self._memo.__getitem__, values), np.int64, len(values))
        except KeyError:
            if len(self._memo) > MEMO_LIMIT:
                self._memo.clear()
            for value in values:
                if value not in self._memo:
                    self._memo[value] = keyed(self._key, msgspec.json.encode(value))
            return np.fromiter(map(self._memo.__getitem__, values), np.int64, len(values))
