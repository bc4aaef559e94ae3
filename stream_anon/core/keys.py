"""Keyed hashes from one secret: sensitive values, group ids, row orders, changed fields. No key serves two purposes.

Subjects need no secret: they are compared within one process, and its own hash, keyed at random, is enough for that.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from functools import lru_cache, partial
from operator import not_
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from stream_anon.core.hierarchy.base import Ints
from stream_anon.core.hierarchy.tree import text_of
from stream_anon.core.spelling import Spelling

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
        self.subject = _derive(root, b"subject")
        self.field = _derive(root, b"field")
        self.job = _derive(root, b"job")

    def __repr__(self) -> str:
        return "<Keys>"


@lru_cache(maxsize=8)
def _root(secret: str) -> bytes:
    """Derive the root key by scrypt, once per process: each guess costs an attacker 0.1 s and 32 MB, too."""
    return hashlib.scrypt(secret.encode(), salt=_SALT, n=_COST, r=8, p=1, maxmem=128 * 8 * _COST * 2, dklen=32)


def _derive(root: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(root, digest_size=32, person=purpose).digest()


def keyed(key: bytes, data: bytes) -> int:
    """Return a 64-bit keyed hash as a signed integer."""
    return int.from_bytes(hashlib.blake2b(data, key=key, digest_size=8).digest(), "little", signed=True)


def keyed_bytes(key: bytes, *parts: str) -> bytes:
    """Return the 32 bytes of an HMAC over some texts; no two lists of texts are taken for one another."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return hmac.digest(key, b"".join(b"%d:%b" % (len(part), part) for part in encoded), "sha256")


def hash_subjects(
    values: Sequence[Any], spelling: Spelling, key: bytes | None = None
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return who each row is about, as a number that means nothing to another process, and which rows name nobody.

    An identifier is known by its text, compared as `spelling` says: 7 and "7" are one person, and by default so are
    "P1" and " p1". With a key the number is the same in every process that has it. Nothing is remembered. Two people
    of one number, one chance in 2^64, would count as one.
    """
    names = [name or "" for name in spelling.each(values)]
    number = hash if key is None else partial(_keyed_name, key)
    people = np.fromiter(map(number, names), np.int64, len(names))
    return people, np.fromiter(map(not_, names), np.bool_, len(names))


def _keyed_name(key: bytes, name: str) -> int:
    return keyed(key, name.encode("utf-8", "surrogatepass"))


class ValueHash:
    """Codes for sensitive values that have no hierarchy: texts that count as one value have one code."""

    def __init__(self, key: bytes, spelling: Spelling) -> None:
        self._key = key
        self._spelling = spelling
        self._memo: dict[Any, int] = {}
        self.missing = keyed(key, msgspec.json.encode(None))

    def __call__(self, values: Sequence[Any]) -> Ints:
        """Return one code per value, `missing` for what means that there is none."""
        known = memo_keys(values)
        try:
            return np.fromiter(map(self._memo.__getitem__, known), np.int64, len(values))
        except KeyError:
            if len(self._memo) > MEMO_LIMIT:
                self._memo.clear()
            for key, value in zip(known, values, strict=True):
                if key not in self._memo:
                    self._memo[key] = keyed(self._key, msgspec.json.encode(self._spelling(value)))
            return np.fromiter(map(self._memo.__getitem__, known), np.int64, len(values))


def memo_keys(values: Sequence[Any]) -> Sequence[Any]:
    """Return dictionary keys of values that keep booleans apart from the numbers they equal in Python."""
    if bool not in set(map(type, values)):
        return values
    return [text_of(value) if type(value) is bool else value for value in values]
