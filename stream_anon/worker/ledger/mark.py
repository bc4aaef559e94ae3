"""The mark on published records: which ledgers finished their rows. Sealed, so that it tells readers nothing.

A ledger lies beside an offset, where whoever may commit for the group, or a broker that lost its latest records, can
put an older one back. The output does not go back with it: its marks name sequence numbers that only later ledgers had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stream_anon.worker.ledger.ledger import Place
from stream_anon.worker.ledger.packing import Reader, Writer
from stream_anon.worker.ledger.seal import Seal


class Mark(NamedTuple):
    """Sequence numbers of ledgers by partition, as the transaction of a published record knew them.

    `announced` are of those that announced what it publishes and finished the rows: they were committed before.
    `written` are of those that it writes itself: they count if it was committed.
    """

    announced: Mapping[int, int]
    written: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class MarkSeal:
    """Seals marks under a key derived from the policy's secret, for the ledgers of one group and topic."""

    _seal: Seal

    @classmethod
    def of(cls, secret: bytes) -> MarkSeal:
        """Return the seal of a secret."""
        return cls(Seal.of(secret, b"mark"))

    def seal(self, mark: Mark, place: Place) -> bytes:
        """Return the bytes of a mark; any partition's place says which group and topic it is of."""
        out = Writer()
        for numbers in mark:
            out.number(len(numbers))
            for partition, sequence in sorted(numbers.items()):
                out.number(partition)
                out.number(sequence)
        return self._seal.close(out.bytes(), _whose(place))

    def open(self, data: bytes, place: Place) -> Mark | None:
        """Return a mark, or None if somebody else made it: another group, another policy's secret, anyone."""
        plain = self._seal.open(data, _whose(place))
        if plain is None:
            return None
        read = Reader(plain)
        mark = Mark(_numbers(read), _numbers(read))
        read.end()
        return mark


def mark_room(partitions: int) -> int:
    """Return how many bytes the mark on a record may take, where the input has so many partitions."""
    return 64 + 16 * partitions


def _numbers(read: Reader) -> dict[int, int]:
    return {read.number(): read.number() for _ in range(read.number())}


def _whose(place: Place) -> bytes:
    return f"{place.cluster_id}\n{place.topic_id}\n{place.group}".encode()
