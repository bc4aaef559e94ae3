"""Keyed hashes from one secret: sensitive values, group ids and row orders. No key serves two purposes.

Subjects need no secret: they are compared within one process, and its own hash, keyed at random, is enough for that.
"""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import not_
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy.base import Ints
from stream_anon.core.hierarchy.tree import text_of

_SALT = b"stream-anon root key"  # there is no place for one of each policy's own: a successor knows the secret alone
_COST = 2**15
MEMO_LIMIT = 65_536
"""How many hashes of sensitive values are remembered; a bound, so that a field of free text cannot fill the memory."""


class Keys:
    """The keys of one secret. Without a secret they are random, and nothing can be published again identically."""

    def __init__(self, secret: str | None) -> None:
        root = _root(secret) if secret is not None else secrets.token_bytes(32)
        self.stable = secret is not None
        self.value = _derive(root, b"value")
        self.group = _derive(root, b"group")
        self.ledger = _derive(root, b"ledger")

    def __repr__(self) -> str:
        return "<Keys>"


@lru_cache(maxsize=8)
def _root(secret: str) -> bytes:
    """Derive the root key by scrypt, once per process: each guess costs an attacker 0.1 s and 32 MB, too."""
    return hashlib.scrypt(secret.encode(), salt=_SALT, n=_COST, r=8, p=1, maxmem=128 * 8 * _COST * 2, dklen=32)


def _derive(root: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(root, digest_size=32, person=purpose).digest()


def keyed(key: bytes, data: bytes) -> int:
    """A 64-bit keyed hash as a signed integer."""
    return int.from_bytes(hashlib.blake2b(data, key=key, digest_size=8).digest(), "little", signed=True)


def hash_subjects(values: Iterable[Any]) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Who a row is about, as a number that means nothing to another process, and which rows name nobody.

    An identifier is known by its text, without space around it and in Unicode's composed form: 7 and "7" are one
    person, and so are two spellings of an accent. Nothing is remembered. Two people of one number, one chance in 2^64,
    would count as one.
    """
    names = [value.strip() if type(value) is str and value.isascii() else _name(value) or "" for value in values]
    people = np.fromiter(map(hash, names), np.int64, len(names))
    return people, np.fromiter(map(not_, names), np.bool_, len(names))


def _name(value: Any) -> str | None:
    """The text by which a value is known, as in a tree or a policy's tables: 1, 1.0, "1" and " 1 " are one value."""
    if value is None:
        return value
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value).strip()
    return text_of(int(value) if isinstance(value, float) and value.is_integer() else value)


class ValueHash:
    """Codes for sensitive values that have no hierarchy: equal texts, equal codes."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._memo: dict[str | None, int] = {}

    def __call__(self, values: Sequence[Any]) -> Ints:
        """One code per value."""
        names = [value if type(value) is str else _name(value) for value in values]
        try:
            return np.fromiter(map(self._memo.__getitem__, names), np.int64, len(names))
        except KeyError:
            if len(self._memo) > MEMO_LIMIT:
                self._memo.clear()
            for name in names:
                if name not in self._memo:
                    self._memo[name] = keyed(self._key, msgspec.json.encode(name))
            return np.fromiter(map(self._memo.__getitem__, names), np.int64, len(names))
