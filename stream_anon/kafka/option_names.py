"""Options of Kafka clients by Kafka's own names, and those nobody may set; independent of the client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
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


_COMMON = """
security.protocol sasl.mechanism sasl.mechanisms sasl.username sasl.password sasl.jaas.config ssl.ca.location
ssl.certificate.location ssl.key.location ssl.key.password ssl.truststore.location
ssl.endpoint.identification.algorithm ssl.cafile ssl.certfile ssl.keyfile ssl.password ssl.check.hostname
sasl.plain.username sasl.plain.password client.id client.rack client.dns.lookup session.timeout.ms
heartbeat.interval.ms max.poll.interval.ms max.poll.records request.timeout.ms transaction.timeout.ms
delivery.timeout.ms fetch.min.bytes fetch.max.bytes fetch.max.wait.ms fetch.wait.max.ms
max.partition.fetch.bytes fetch.message.max.bytes receive.buffer.bytes send.buffer.bytes socket.timeout.ms
linger.ms batch.size buffer.memory compression.type compression.level max.request.size message.max.bytes
metadata.max.age.ms connections.max.idle.ms retry.backoff.ms reconnect.backoff.ms reconnect.backoff.max.ms
group.instance.id
"""
COMMON = frozenset(_COMMON.split())
"""The options that people set, by Kafka's names and by those of the clients."""


def misspelt(options: Iterable[str]) -> dict[str, str]:
    """Return the names that are nearly those of known options, with what was meant; what is unknown may be right.

    >>> misspelt(["sesion.timeout.ms", "session_timeout_ms", "some.rare.option"])
    {'sesion.timeout.ms': 'session.timeout.ms'}
    """
    found = {}
    for name in options:
        key = name.replace("_", ".")
        if key not in COMMON and key not in _DECIDED and (meant := get_close_matches(key, COMMON, 1, 0.85)):
            found[name] = meant[0]
    return found


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
