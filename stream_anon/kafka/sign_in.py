"""Try a user and a password on an open connection to a broker: clients take a refusal for a broker that is away."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

_HANDSHAKE, _AUTHENTICATE = 17, 36  # requests of Kafka's protocol
_UNKNOWN_MECHANISM = 33
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_LARGEST = 1 << 16  # bytes of an answer
_ROUNDS = range(4_096, 1_000_000)  # of hashing: fewer would give the password away, and who asks for more is no broker
_REFUSED = "the broker refuses the user or the password: see sasl.username and sasl.password in kafka.options"


def why_refused(connection: socket.socket, options: Mapping[str, Any]) -> str | None:
    """Return why a broker does not let this user in, None if it does, or if its mechanism is not tried here."""
    mechanism = str(options.get("sasl.mechanism", options.get("sasl.mechanisms", "PLAIN"))).upper()
    user = options.get("sasl.username", options.get("sasl.plain.username"))
    password = options.get("sasl.password", options.get("sasl.plain.password"))
    if user is None or password is None:
        return None
    answer = _asked(connection, _HANDSHAKE, 1, _text(mechanism))
    (error,) = struct.unpack_from(">h", answer)
    if error == _UNKNOWN_MECHANISM:
        return f"the broker does not know sasl.mechanism {mechanism}: it knows {', '.join(_texts(answer[2:]))}"
    if error:
        return _REFUSED
    if mechanism == "PLAIN":
        return _send(connection, f"\0{user}\0{password}".encode())[0]
    return _scram(connection, _HASHES[mechanism], str(user), str(password)) if mechanism in _HASHES else None


def _scram(connection: socket.socket, name: str, user: str, password: str) -> str | None:
    """Carry out the exchange of RFC 5802, in which the password itself is not sent."""
    nonce = secrets.token_hex(16)
    bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    refused, first = _send(connection, f"n,,{bare}".encode())
    if refused is not None:
        return refused
    told = dict(part.split("=", 1) for part in first.decode().split(","))
    if int(told["i"]) not in _ROUNDS or not told["r"].startswith(nonce):
        raise ConnectionError("no answer of a broker")
    salted = hashlib.pbkdf2_hmac(name, password.encode(), b64decode(told["s"]), int(told["i"]))
    last = f"c=biws,r={told['r']}"
    client = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, client).digest(), f"{bare},{first.decode()},{last}".encode(), name)
    proof = bytes(a ^ b for a, b in zip(client, signature, strict=True))
    return _send(connection, f"{last},p={b64encode(proof).decode()}".encode())[0]


def _send(connection: socket.socket, data: bytes) -> tuple[str | None, bytes]:
    """Send a step of the exchange; return why it was refused, None if it was not, and the broker's step."""
    answer = _asked(connection, _AUTHENTICATE, 0, struct.pack(">i", len(data)) + data)
    (error, length) = struct.unpack_from(">hh", answer)
    start = 4 + max(length, 0)
    (size,) = struct.unpack_from(">i", answer, start)
    return (_REFUSED if error else None), answer[start + 4 : start + 4 + max(size, 0)]


def _asked(connection: socket.socket, request: int, version: int, body: bytes) -> bytes:
    """Send a request and return the answer behind its header."""
    head = struct.pack(">hhi", request, version, 1) + _text("stream-anon")
    connection.sendall(struct.pack(">i", len(head + body)) + head + body)
    (size,) = struct.unpack(">i", _read(connection, 4))
    if not 4 <= size <= _LARGEST:
        raise ConnectionError("no answer of a broker")
    return _read(connection, size)[4:]


def _read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise ConnectionError("the broker hung up")
        found += part
    return found


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def _texts(data: bytes) -> list[str]:
    (count,) = struct.unpack_from(">i", data)
    found, at = [], 4
    for _ in range(min(count, 20)):
        (size,) = struct.unpack_from(">h", data, at)
        found.append(data[at + 2 : at + 2 + size].decode(errors="replace"))
        at += 2 + size
    return found
