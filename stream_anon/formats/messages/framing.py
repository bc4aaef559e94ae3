"""The framing of a schema registry: a zero byte, the number of the schema in four bytes, for Protobuf a path, the body.

The path names one message of a Protobuf schema: its place among the messages of the file, then among those inside it.
"""

from __future__ import annotations

from stream_anon.formats.messages.varint import read_signed, signed

MAGIC = b"\x00"
HEAD = 5
"""Bytes before the body, or before the path."""


def frame(schema_id: int) -> bytes:
    """Return what stands before the body of a message.

    >>> frame(7)
    b'\\x00\\x00\\x00\\x00\\x07'
    """
    return MAGIC + schema_id.to_bytes(4, "big")


def schema_id_of(head: bytes) -> int:
    """Return the number of the schema that a framed message names."""
    return int.from_bytes(head[1:HEAD], "big")


def path_bytes(path: tuple[int, ...]) -> bytes:
    """Return the path of a Protobuf message; that of the first message of a file has a short form.

    >>> path_bytes((0,)), path_bytes((1, 0))
    (b'\\x00', b'\\x04\\x02\\x00')
    """
    return b"\x00" if path == (0,) else b"".join(map(signed, (len(path), *path)))


def read_path(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Return the path that begins at a place, and the place after it; raise ValueError if there is none."""
    count, at = read_signed(data, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= 100:  # deeper than any schema
        raise ValueError("no path of a message")
    path = []
    for _ in range(count):
        number, at = read_signed(data, at)
        path.append(number)
    return tuple(path), at
