"""Pack numbers and group members into few bytes: variable-length integers, and bit-packed (partition, offset) pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from stream_anon.worker.ledger.ledger import Members, Offsets

_WIDEST = 62  # bits of an offset; wider ones do not exist
_MOST = 1 << 20  # members that room is made for; a ledger that fits has some thousands


class Writer:
    """A buffer to which values are appended; `Reader` reads them back in the same order."""

    def __init__(self) -> None:
        self._out = bytearray()

    def number(self, value: int) -> None:
        """Append a non-negative integer, seven bits a byte."""
        if value < 0:
            raise ValueError("negative")
        while value > 127:
            self._out.append(value & 127 | 128)
            value >>= 7
        self._out.append(value)

    def raw(self, data: bytes) -> None:
        """Append bytes of a length the reader knows."""
        self._out += data

    def bytes(self) -> bytes:
        """Return everything written so far."""
        return bytes(self._out)


class Reader:
    """A parser of written values; anything missing, left over or not in shortest form is a `ValueError`."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        """Read a non-negative integer."""
        value = shift = 0
        while True:
            byte = self.raw(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 70:
                raise ValueError("number too long")
        if byte == 0 and shift:
            raise ValueError("number not in shortest form")
        return value

    def raw(self, length: int) -> bytes:
        """Read exactly `length` bytes."""
        part = self._data[self._at : self._at + length]
        if length < 0 or len(part) != length:
            raise ValueError("too short")
        self._at += length
        return part

    def end(self) -> None:
        """Raise ValueError if anything is left."""
        if self._at != len(self._data):
            raise ValueError("too long")


def pack_waiting(out: Writer, waiting: Offsets, span: int) -> None:
    """Write which of `span` offsets wait: a bit for each, or the distances between those that do if they are few.

    A single row that is held back for long makes the span as wide as the stream.
    """
    distance = np.diff(waiting, prepend=0)
    width = int(distance.max()).bit_length() if len(waiting) else 0
    few = bool(len(waiting)) and len(waiting) * width < span
    out.number(len(waiting) if few else 0)
    if few:
        out.number(width)
        out.raw(_bits(distance, width))
    else:
        bits = np.zeros(span, dtype=np.uint8)
        bits[waiting] = 1
        out.raw(np.packbits(bits).tobytes())


def unpack_waiting(read: Reader, span: int) -> Offsets:
    """Read the offsets that `pack_waiting` wrote."""
    count = read.number()
    if count:
        width = read.number()
        if width > _WIDEST or count > span or (count > 1 and not width):
            raise ValueError("no such offsets")
        distance = _numbers(read, count, width)
        waiting = np.cumsum(distance)
        if (distance[1:] < 1).any() or (distance < 0).any() or int(waiting[-1]) >= span:
            raise ValueError("offsets out of order, or beyond the position")
        return waiting
    bits = np.unpackbits(np.frombuffer(read.raw((span + 7) // 8), dtype=np.uint8))
    if bits[span:].any():
        raise ValueError("bits beyond the position")
    return np.flatnonzero(bits[:span]).astype(np.int64)


def pack_members(out: Writer, groups: Sequence[Members]) -> None:
    """Write the sizes, then for all members a partition's index and the distance to its lowest offset."""
    out.number(len(groups))
    if not groups:
        return
    for members in groups:
        out.number(len(members))
    flat = np.concatenate(groups)
    partitions, index = np.unique(flat[:, 0], return_inverse=True)
    lowest = np.full(len(partitions), np.iinfo(np.int64).max)
    np.minimum.at(lowest, index, flat[:, 1])
    distance = flat[:, 1] - lowest[index]
    out.number(len(partitions))
    for partition, low in zip(partitions.tolist(), lowest.tolist(), strict=True):
        out.number(partition)
        out.number(low)
    width = int(distance.max()).bit_length()
    out.number(width)
    out.raw(_bits(index.astype(np.int64), (len(partitions) - 1).bit_length()))
    out.raw(_bits(distance, width))


def unpack_members(read: Reader) -> tuple[Members, ...]:
    """Read the groups that `pack_members` wrote."""
    count = read.number()
    if not count:
        return ()
    sizes = [read.number() for _ in range(count)]
    total = sum(sizes)
    kinds = read.number()
    if not 0 < kinds <= total or min(sizes) < 1:
        raise ValueError("a group without members")
    if total > _MOST:
        raise ValueError("more members than any ledger holds")
    pairs = [(read.number(), read.number()) for _ in range(kinds)]
    width = read.number()
    if width > _WIDEST:
        raise ValueError("offsets too wide")
    index = _numbers(read, total, (kinds - 1).bit_length())
    distance = _numbers(read, total, width)
    flat = np.array(pairs, dtype=np.int64)[index]
    flat[:, 1] += distance
    if (flat < 0).any():
        raise ValueError("no such offset")
    groups = tuple(flat[first:last] for first, last in pairwise(accumulate(sizes, initial=0)))
    for members in groups:
        if any(a >= b for a, b in pairwise(map(tuple, members.tolist()))):
            raise ValueError("members out of order")
    return groups


def partitions_of(groups: Sequence[Members]) -> list[int]:
    """Return the partitions that members are of, in ascending order."""
    if not groups:
        return []
    found: list[int] = np.unique(np.concatenate(groups)[:, 0]).tolist()
    return found


def pack_ends(out: Writer, ends: Sequence[int]) -> None:
    """Write end offsets as their lowest and the distances to it: keyed records fill partitions evenly."""
    out.number(len(ends))
    if ends:
        distance = np.array(ends, dtype=np.int64) - min(ends)
        width = int(distance.max()).bit_length()
        out.number(min(ends))
        out.number(width)
        out.raw(_bits(distance, width))


def unpack_ends(read: Reader) -> tuple[int, ...]:
    """Read the offsets that `pack_ends` wrote."""
    count = read.number()
    if not count:
        return ()
    lowest, width = read.number(), read.number()
    if width > _WIDEST or count > _MOST or lowest >> _WIDEST:
        raise ValueError("no such offsets")
    return tuple((lowest + _numbers(read, count, width)).tolist())


def _bits(values: npt.NDArray[np.int64], width: int) -> bytes:
    if not width:
        return b""
    shifts = np.arange(width - 1, -1, -1, dtype=np.int64)
    return np.packbits(((values[:, None] >> shifts) & 1).astype(np.uint8).ravel()).tobytes()


def _numbers(read: Reader, count: int, width: int) -> npt.NDArray[np.int64]:
    if not width:
        return np.zeros(count, dtype=np.int64)
    bits = np.unpackbits(np.frombuffer(read.raw((count * width + 7) // 8), dtype=np.uint8))
    if bits[count * width :].any():
        raise ValueError("bits beyond the last member")
    shifts = np.arange(width - 1, -1, -1, dtype=np.int64)
    values: npt.NDArray[np.int64] = (bits[: count * width].reshape(count, width).astype(np.int64) << shifts).sum(axis=1)
    return values
