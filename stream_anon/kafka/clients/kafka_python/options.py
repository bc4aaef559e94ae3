"""Client options by their Kafka names, spelled for kafka-python and passed to the clients that know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from stream_anon.kafka.option_names import dotted, unknown

_OTHER_NAMES = {
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "sasl.mechanisms": "sasl_mechanism",
    "fetch.wait.max.ms": "fetch_max_wait_ms",
    "message.max.bytes": "max_request_size",
}
_ROLES: dict[str, type] = {"consumer": KafkaConsumer, "producer": KafkaProducer, "admin": KafkaAdminClient}


def client_options(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of consumer, producer and admin client; an option goes to each that knows it.

    >>> client_options({"session.timeout.ms": 6000})["consumer"]
    {'session_timeout_ms': 6000}
    """
    result: dict[str, dict[str, Any]] = {role: {} for role in _ROLES}
    for name, value in dotted(options).items():
        key = _OTHER_NAMES.get(name, name.replace(".", "_"))
        knowing = [role for role, client in _ROLES.items() if key in client.DEFAULT_CONFIG]  # type: ignore[attr-defined]
        if not knowing:
            valid = {k.replace("_", ".") for c in _ROLES.values() for k in c.DEFAULT_CONFIG}  # type: ignore[attr-defined]
            raise unknown(name, valid)
        for role in knowing:
            result[role][key] = value
    return result
