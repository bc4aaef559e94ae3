"""Translate errors of confluent-kafka to the transport's; their text is dropped, as it may quote a record."""

from __future__ import annotations

import contextlib
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from stream_anon.kafka.transport import LEDGER_TOO_LARGE, RIGHT_MISSING, AbortableError, FencedError, TransportError

_PASSING = {KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._TRANSPORT, KafkaError._WAIT_COORD}
_PASSING |= {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.NOT_COORDINATOR,  # a new broker, or one that took over, is still finding out
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.KAFKA_STORAGE_ERROR,  # a disk that failed: another broker leads soon, or this one ends
}
_FORBIDDEN = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


class translated(contextlib.AbstractContextManager[None]):  # noqa: N801 - reads as a verb
    """A context that raises the transport's error in place of the client's."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, KafkaException):
            raise translate(error.args[0]) from None


def translate(error: KafkaError) -> TransportError:
    """Return the transport's error: one to abort and go on, one to end the worker, or one to report."""
    name, code = error.name(), error.code()
    if code == KafkaError.INVALID_COMMIT_OFFSET_SIZE:
        return FencedError(LEDGER_TOO_LARGE)
    if code in _FORBIDDEN:
        return FencedError(f"{name}: {RIGHT_MISSING}")
    if error.fatal() or code == KafkaError.OFFSET_METADATA_TOO_LARGE:
        return FencedError(name)
    if error.txn_requires_abort() or error.retriable() or passing(error) or code == KafkaError.MSG_SIZE_TOO_LARGE:
        return AbortableError(name)
    return TransportError(name)


def passing(error: KafkaError) -> bool:
    """Tell whether the error only means that no broker answers at the moment."""
    return error.code() in _PASSING
