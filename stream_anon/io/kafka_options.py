"""Client options by their Kafka names: spelled for the client, given to whom they concern, refused where we decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from stream_anon.errors import StreamAnonError, nearest

_OTHER_NAMES = {
    "ssl_ca_location": "ssl_cafile",
    "ssl_certificate_location": "ssl_certfile",
    "ssl_key_location": "ssl_keyfile",
    "ssl_key_password": "ssl_password",
    "sasl_username": "sasl_plain_username",
    "sasl_password": "sasl_plain_password",
    "max_request_size": "max_request_size",
}
_DECIDED = {
    "isolation_level": "the promise needs read_committed input",
    "enable_auto_commit": "an automatic commit would erase the ledger",
    "auto_offset_reset": "a silent jump would lose or repeat records; use --from",
    "group_id": "it is `kafka.group` in the policy",
    "bootstrap_servers": "it is `kafka.bootstrap` in the policy",
    "transactional_id": "it follows from the worker's name; use --instance",
    "enable_idempotence": "transactions need it on",
    "acks": "transactions need all",
    "key_serializer": "records are bytes",
    "value_serializer": "records are bytes",
    "key_deserializer": "records are bytes",
    "value_deserializer": "records are bytes",
}
_ROLES: dict[str, type] = {"consumer": KafkaConsumer, "producer": KafkaProducer, "admin": KafkaAdminClient}


def client_options(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Options for consumer, producer and admin client; an option goes to each that knows it.

    >>> client_options({"session.timeout.ms": 6000})["consumer"]
    {'session_timeout_ms': 6000}
    """
    result: dict[str, dict[str, Any]] = {role: {} for role in _ROLES}
    for name, value in options.items():
        key = name.replace(".", "_")
        key = _OTHER_NAMES.get(key, key)
        if key in _DECIDED:
            raise StreamAnonError(f"kafka.options: {name} cannot be set: {_DECIDED[key]}")
        knowing = [role for role, client in _ROLES.items() if key in client.DEFAULT_CONFIG]  # type: ignore[attr-defined]
        if not knowing:
            valid = sorted({k.replace("_", ".") for c in _ROLES.values() for k in c.DEFAULT_CONFIG})  # type: ignore[attr-defined]
            hint = nearest(name, valid)
            raise StreamAnonError(f"kafka.options: there is no option {name}" + (f"; {hint}" if hint else ""))
        for role in knowing:
            result[role][key] = value
    return result
