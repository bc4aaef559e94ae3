"""Settings of new topics, and the remedies when a broker refuses them; independent of the client."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from stream_anon.kafka.transport import TransportError

_SETTINGS = {"cleanup.policy": "delete"}  # set explicitly: brokers may default to compaction
_COMPACTED = {
    "cleanup.policy": "compact",
    "max.message.bytes": "1048588",  # set explicitly: brokers may default to less, or more
    "segment.bytes": "67108864",  # only closed segments are compacted
    "min.cleanable.dirty.ratio": "0.2",
}

NO_ANSWER = "check address, port and firewall; a wrong SASL password looks the same as no broker"
TOO_MANY_COPIES = "--replication may not exceed the number of brokers"
FORBIDDEN = "allow CREATE and DESCRIBE on the topics, or let an administrator create them"

_PATIENCE = 20.0  # seconds until every topic has a leader


def settings_of(topic: str, compacted: Collection[str]) -> dict[str, str]:
    """Return the settings of a new topic."""
    return _COMPACTED if topic in compacted else _SETTINGS


def await_known(known: Callable[[], bool]) -> None:
    """Wait until the broker knows its new topics: a worker started at once would miss them."""
    end = time.monotonic() + _PATIENCE
    while not known():
        if time.monotonic() > end:
            raise TransportError("topics were created, but the broker does not know them yet; wait and try again")
        time.sleep(0.05)


def not_created(why: str, remedy: str) -> TransportError:
    """Return the error of topics that were not created; `why` is the client's name of the error, without its text."""
    return TransportError(f"topics cannot be created: {why}; {remedy}")
