"""Encrypt and authenticate short texts under keys derived from the policy's secret, each purpose with its own."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_NONCE = 12


@dataclass(frozen=True, slots=True)
class Seal:
    """A seal for one purpose. The nonce is a keyed hash of the content: equal contents are sealed equally."""

    _cipher: AESGCM
    _nonce_key: bytes

    @classmethod
    def of(cls, secret: bytes, purpose: bytes) -> Seal:
        """Return the seal of a secret for one purpose only."""
        return cls(AESGCM(derive(secret, purpose + b" cipher")), derive(secret, purpose + b" nonce"))

    def __repr__(self) -> str:
        return "<Seal>"

    def close(self, plain: bytes, about: bytes) -> bytes:
        """Seal a content; it can be opened by whoever knows the secret and what it is `about`."""
        nonce = self.digest(about + plain)[:_NONCE]
        return nonce + self._cipher.encrypt(nonce, plain, about)

    def open(self, sealed: bytes, about: bytes) -> bytes | None:
        """Return the content, or None if somebody else made it or changed it, or it is about something else."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], about)
        except (ValueError, InvalidTag):
            return None

    def digest(self, data: bytes) -> bytes:
        """Return a keyed digest of 32 bytes."""
        return hmac.digest(self._nonce_key, data, "sha256")


def derive(secret: bytes, purpose: bytes) -> bytes:
    """Derive a key for one purpose only."""
    return HKDF(hashes.SHA256(), 32, salt=None, info=b"stream-anon " + purpose).derive(secret)
