"""Translate errors of kafka-python to the transport's; their text is dropped, as it may quote a record."""

from __future__ import annotations

import contextlib
from typing import Any

from kafka import errors as client_errors

from stream_anon.kafka.transport import LEDGER_TOO_LARGE, RIGHT_MISSING, AbortableError, FencedError, TransportError


class translated(contextlib.AbstractContextManager[None]):  # noqa: N801 - reads as a verb
    """A context that raises the transport's error in place of the client's."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, client_errors.KafkaError):
            raise translate(error) from None


def translate(error: Exception) -> TransportError:
    """Return the transport's error: one to abort and go on, one to end the worker, or one to report."""
    name = type(error).__name__
    if isinstance(error, client_errors.InvalidCommitOffsetSizeError):
        return FencedError(LEDGER_TOO_LARGE)
    if isinstance(error, client_errors.CommitFailedError | client_errors.MessageSizeTooLargeError):
        return AbortableError(name)
    if isinstance(error, client_errors.AuthorizationError):
        return FencedError(f"{name}: {RIGHT_MISSING}")
    fatal = (
        client_errors.ProducerFencedError,
        client_errors.OffsetMetadataTooLargeError,
        client_errors.UnsupportedVersionError,
    )
    if isinstance(error, fatal):
        return FencedError(name)
    if getattr(error, "retriable", False):
        return AbortableError(name)
    return TransportError(name)
