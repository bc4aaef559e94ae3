"""Encode a ledger as the text beside a committed offset: compact, encrypted, ended by NUL; decoding trusts nothing."""

from __future__ import annotations

import hashlib
import struct
import zlib
from base64 import b85decode
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from stream_anon.errors import StreamAnonError
from stream_anon.kafka.transport import Committed
from stream_anon.worker.ledger.ledger import Ledger, Members, Place, Seen
from stream_anon.worker.ledger.packing import (
    Reader,
    Writer,
    pack_ends,
    pack_members,
    pack_waiting,
    partitions_of,
    unpack_ends,
    unpack_members,
    unpack_waiting,
)
from stream_anon.worker.ledger.seal import Seal

_VERSION = "4"  # 1: keys without scrypt; 2: neither group nor output; 3: a bit for every offset, however few wait
_POWERS = 85 ** np.arange(4, -1, -1)
_ALPHABET = np.frombuffer(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~", dtype=np.uint8
)
_MOST = 1 << 24  # bytes a decoder will inflate: far beyond any ledger that fits, far below what would hurt


class LedgerError(StreamAnonError):
    """A committed text is not the ledger of this partition. `code` names the finding, the message the remedy."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Codec:
    """An encoder and decoder of ledgers under keys derived from the policy's secret; equal ledgers have equal texts."""

    _seal: Seal

    @classmethod
    def of(cls, secret: bytes) -> Codec:
        """Return the codec of a secret."""
        return cls(Seal.of(secret, b"ledger"))

    def encode(self, ledger: Ledger) -> Committed:
        """Return offset and text. The text may be too long to be committed: `LedgerBudget.fits` tells."""
        body = _pack(ledger)
        small = zlib.compress(body, 6)
        plain = b"z" + small if len(small) < len(body) else b"r" + body
        return Committed(ledger.low, _VERSION + b85encode(self._seal.close(plain, _VERSION.encode())) + "\0")

    def decode(self, committed: Committed, place: Place) -> Ledger:
        """Return the ledger of `place`, or raise a `LedgerError` that says why this is none."""
        text = committed.metadata.partition("\0")[0]
        if not text:
            raise LedgerError("empty", "an offset was committed without its ledger: by a tool, or by another program")
        if text[0] != _VERSION:
            raise LedgerError("version", "the ledger was written by another version of this program")
        plain = unsealed(self._seal, text)
        try:
            ledger, whose = _unpack(_inflate(plain), place)
        except (ValueError, IndexError, zlib.error, OverflowError):
            raise LedgerError("malformed", "the ledger was decrypted, but its content is malformed") from None
        if whose != whose_of(place):
            raise LedgerError("misplaced", "the ledger belongs to another cluster, group, topic or partition")
        if ledger.low != committed.offset:
            raise LedgerError("moved", "the committed offset was changed and the ledger beside it was not")
        return ledger


def b85encode(data: bytes) -> str:
    """Encode as `base64.b85encode` does, all words at once: the library goes word by word, in Python.

    >>> b85encode(b"ledger"), b85decode(b85encode(b"ledger"))
    ('Y-MC;WpV', b'ledger')
    """
    padding = -len(data) % 4
    words = np.frombuffer(data + bytes(padding), dtype=">u4").astype(np.int64)
    digits = words[:, None] // _POWERS % 85
    return bytes(_ALPHABET[digits])[: 5 * len(words) - padding].decode("ascii")


def unsealed(seal: Seal, text: str) -> bytes:
    """Return the content of a text whose first character names its version, or raise `LedgerError`."""
    try:
        sealed = b85decode(text[1:])
        same = b85encode(sealed) == text[1:]  # the last character of a text has bits that nobody reads
        plain = seal.open(sealed, text[:1].encode()) if same else None
    except ValueError:
        plain = None
    if plain is None:
        raise LedgerError("unreadable", "the ledger cannot be decrypted: another secret, or another text")
    return plain


def digest_of(key: bytes, records: list[bytes]) -> int:
    """Return a keyed 64-bit digest of one group's records in their order, and of where each of them ends."""
    ends = struct.pack(f"<{len(records)}I", *map(len, records))
    return int.from_bytes(hashlib.sha256(b"".join([key, ends, *records])).digest()[:8], "big")


def combined(digests: Iterable[int]) -> int:
    """Return the digest under which a ledger names several groups, in any order: the sum of theirs."""
    return sum(digests) % 2**64


def whose_of(place: Place) -> bytes:
    """Return a short digest of where a ledger belongs."""
    text = f"{place.cluster_id}\n{place.topic_id}\n{place.partition}\n{place.group}"
    return hashlib.sha256(text.encode()).digest()[:12]


def _pack(ledger: Ledger) -> bytes:
    out = Writer()
    for number in (ledger.writer, ledger.sequence, ledger.known, ledger.low, ledger.position - ledger.low):
        out.number(number)
    out.raw(ledger.fingerprint.ljust(8, b"\0")[:8] + whose_of(ledger.place) + ledger.digest.to_bytes(8, "big"))
    pack_waiting(out, ledger.waiting - ledger.low, ledger.position - ledger.low)
    pack_members(out, ledger.announced)
    for party in partitions_of(ledger.announced):
        out.number(ledger.parties[party])
    out.raw(ledger.seen.topic)
    pack_ends(out, ledger.seen.ends)
    return out.bytes()


def _unpack(body: bytes, place: Place) -> tuple[Ledger, bytes]:
    read = Reader(body)
    writer, sequence, known, low, span = (read.number() for _ in range(5))
    fingerprint, whose, digest = read.raw(8), read.raw(12), int.from_bytes(read.raw(8), "big")
    waiting = unpack_waiting(read, span) + low
    announced: tuple[Members, ...] = unpack_members(read)
    parties = {party: read.number() for party in partitions_of(announced)}
    seen = Seen(read.raw(4), unpack_ends(read))
    read.end()
    ledger = Ledger(place, fingerprint, low + span, waiting, announced, digest, known, writer, sequence, parties, seen)
    if ledger.low != low:
        raise ValueError("its lowest offset does not wait")
    return ledger, whose


def _inflate(plain: bytes) -> bytes:
    kind, rest = plain[:1], plain[1:]
    if kind == b"r":
        return rest
    if kind != b"z":
        raise ValueError("unknown form")
    inflater = zlib.decompressobj()
    body = inflater.decompress(rest, _MOST)
    if not inflater.eof or inflater.unused_data:
        raise ValueError("not one whole stream")
    return body
