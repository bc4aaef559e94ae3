"""Options of Kafka clients by Kafka's own names, and those nobody may set; independent of the client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stream_anon.errors import StreamAnonError, nearest

_DECIDED = {
    "isolation.level": "the promise needs read_committed input",
    "enable.auto.commit": "an automatic commit would erase the ledger",
    "auto.offset.reset": "a silent jump would lose or repeat records; use --from",
    "group.id": "it is `kafka.group` in the policy",
    "group.protocol": "the ledgers follow the generations of the classic protocol",
    "partition.assignment.strategy": "partitions move one by one, each with its ledger",
    "bootstrap.servers": "it is `kafka.bootstrap` in the policy",
    "transactional.id": "it follows from the worker's name; use --instance",
    "enable.idempotence": "transactions need it on",
    "acks": "transactions need all",
    "api.version": "the broker is asked: older requests do not fence a worker that was replaced",
    "api.version.request": "the broker is asked: older requests do not fence a worker that was replaced",
    "broker.version.fallback": "the broker is asked: older requests do not fence a worker that was replaced",
    "key.serializer": "records are bytes",
    "value.serializer": "records are bytes",
    "key.deserializer": "records are bytes",
    "value.deserializer": "records are bytes",
}


def dotted(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by their names with dots; raise for those that the worker must set itself.

    >>> dotted({"security_protocol": "SSL", "session.timeout.ms": 6000})
    {'security.protocol': 'SSL', 'session.timeout.ms': 6000}
    """
    result = {}
    for name, value in options.items():
        key = name.replace("_", ".")
        if key in _DECIDED:
            raise StreamAnonError(f"kafka.options: {name} cannot be set: {_DECIDED[key]}")
        result[key] = value
    return result


def unknown(name: str, valid: Iterable[str]) -> StreamAnonError:
    """Return the error for an option that the client does not have."""
    hint = nearest(name, sorted(valid))
    return StreamAnonError(f"kafka.options: there is no option {name}" + (f"; {hint}" if hint else ""))
