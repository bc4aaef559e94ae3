"""Whole numbers of variable length, as Avro and the framing of Protobuf write them: seven bits a byte, zigzag."""

from __future__ import annotations

_LONGEST = 10  # bytes of a number of 64 bits


def signed(number: int) -> bytes:
    """Return a whole number of 64 bits, small ones of either sign in few bytes.

    >>> signed(0), signed(-1), signed(64)
    (b'\\x00', b'\\x01', b'\\x80\\x01')
    """
    return unsigned((number << 1) ^ (number >> 63))


def unsigned(number: int) -> bytes:
    """Return a whole number of 64 bits that is not negative.

    >>> unsigned(1), unsigned(300)
    (b'\\x01', b'\\xac\\x02')
    """
    if not 0 <= number < 1 << 64:
        raise OverflowError("a number of more than 64 bits")
    if number < 128:
        return bytes((number,))
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def read_signed(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a place, and the place after it; raise ValueError if it does not end.

    >>> read_signed(b"\\x80\\x01", 0)
    (64, 2)
    """
    found = 0
    for place, byte in enumerate(data[at : at + _LONGEST]):
        found |= (byte & 127) << 7 * place
        if byte < 128:
            return (found >> 1) ^ -(found & 1), at + place + 1
    raise ValueError("a number without an end")
