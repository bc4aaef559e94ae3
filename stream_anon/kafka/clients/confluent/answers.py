"""What this client answers, in the transport's words: records by partition, who is a member, a ledger's text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import groupby

from confluent_kafka import Message

from stream_anon.kafka.transport import Slice, TransportError

_TOKEN = b"CGMDv2:"  # how the client writes group, generation and member; anything else would be read wrongly


def columns_of(messages: Iterable[Message]) -> Iterable[Slice]:
    """Return the records by partition; the client delivers them in long runs of one."""
    columns: dict[int, Slice] = {}
    for number, run in groupby(messages, Message.partition):
        mine = list(run)
        part = columns.setdefault(number, Slice(number, [], [], []))
        part.offsets.extend(map(Message.offset, mine))
        part.timestamps.extend([time / 1000.0 for _, time in map(Message.timestamp, mine)])
        part.values.extend(map(Message.value, mine))
    return columns.values()


def read_token(token: bytes) -> tuple[int, str]:
    """Parse generation and member from the client's serialized group metadata.

    >>> read_token(b"CGMDv2:" + (7).to_bytes(4, sys.byteorder) + b"group" + bytes(1) + b"member" + bytes(1) + b"x")
    (7, 'member')
    """
    if not token.startswith(_TOKEN):
        raise TransportError("this version of confluent-kafka is not known to this program: use kafka-python")
    generation = int.from_bytes(token[7:11], sys.byteorder, signed=True)
    return generation, token[11:].split(b"\0")[1].decode()


def ended(metadata: str | None) -> str:
    """Return a ledger as it was committed, with its final NUL."""
    return f"{metadata}\0" if metadata else ""
