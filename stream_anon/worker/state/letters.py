"""Dead letters: what was wrong with which record, and never the record itself unless the policy asks for it."""

from __future__ import annotations

from base64 import b64encode

import msgspec

from stream_anon.kafka.transport import Outgoing


def dead_letter(
    topic: str, source: str, partition: int, offset: int, code: str, column: str | None, payload: bytes | None = None
) -> Outgoing:
    """Return a record for the dead-letter topic, keyed by its origin, so that duplicates can be recognized.

    >>> dead_letter("dead", "in", 0, 7, "unknown_value", "zip").key
    b'in/0/7'
    """
    letter: dict[str, object] = {"code": code, "column": column, "topic": source}
    letter |= {"partition": partition, "offset": offset}
    if payload is not None:
        letter["payload"] = b64encode(payload).decode("ascii")
    return Outgoing(topic, f"{source}/{partition}/{offset}".encode(), [msgspec.json.encode(letter)])


def without_payload(letter: Outgoing) -> Outgoing:
    """Return the same letter without the record it is about."""
    content = msgspec.json.decode(letter.values[0])
    content.pop("payload", None)
    return letter._replace(values=[msgspec.json.encode(content)])
