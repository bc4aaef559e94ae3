"""Send records to a topic, for trials and demonstrations: no transaction, no key, each partition in its turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from stream_anon.kafka.transport import TransportError

LINGER = 20  # milliseconds: a steady trickle still goes out in batches


class Feed(Protocol):
    """A producer of one topic. `taken` counts what the broker acknowledged; a failure is raised at the next call."""

    taken: int

    def send(self, values: Iterable[bytes]) -> None:
        """Queue records for sending and return before the broker has taken them."""

    def flush(self) -> None:
        """Wait until the broker has taken everything."""

    def close(self) -> None:
        """Send what is left, for a short time, and close the producer."""


def unreachable(topic: str, why: str) -> TransportError:
    """Return the error of an unreachable topic; `why` is the client's name of the error, without its text."""
    remedy = "no broker answers, or the topic does not exist: run stream-anon doctor to find out which"
    return TransportError(f"{topic} cannot be written to: {why}; {remedy}")


def not_taken(topic: str, why: str) -> TransportError:
    """Return the error of a record that was refused or did not arrive in time."""
    return TransportError(f"{topic} did not accept a record: {why}")
