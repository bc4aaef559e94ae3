"""Find the record that breaks a step of the core, so that it is rejected alone and the worker goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from stream_anon.core.hierarchy import Floats, Ints
from stream_anon.errors import StreamAnonError
from stream_anon.worker.core import Core

UNUSABLE = "unusable"
"""The code of a record that makes the program fail: a defect, reported in the log, that must not stop a worker."""

_log = logging.getLogger("stream_anon.worker")


def unusable(core: Core, values: Sequence[bytes | None], ref: Ints, arrived: Floats, error: Exception) -> list[int]:
    """Find the records that cannot be encoded, one by one; raise `error` if no single record brings it about."""
    bad = [i for i in range(len(values)) if not _encodes(core, values[i], ref[i : i + 1], arrived[i : i + 1])]
    if not bad:
        raise error
    log_failure("encode", error, len(bad))
    return bad


def _encodes(core: Core, value: bytes | None, ref: Ints, arrived: Floats) -> bool:
    try:
        core.encode([value], ref, arrived)
    except StreamAnonError:
        raise
    except Exception:
        return False
    return True


def log_failure(step: str, error: Exception, records: int) -> None:
    """Log the type of an error and no more: its text could hold a value."""
    facts = {"step": step, "why": type(error).__name__, "records": records, "remedy": "report it: this is a defect"}
    _log.error("unusable records rejected", extra=facts)
